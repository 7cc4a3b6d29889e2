/* tests/e2e/programs/use_both.c: a program linked to two libraries, each linked to a libcudart of its own. */
int use12(void);
int use13(void);

int main(void)
{
	return use12() + use13() + use12();
}
