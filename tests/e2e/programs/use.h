/* tests/e2e/programs/use.h: USE(run) makes run() a program's main or, with -DPLUGIN=NAME, a library's NAME. */
#ifdef PLUGIN
#define USE(run) \
	int PLUGIN(void); \
	int PLUGIN(void) \
	{ \
		return run(); \
	}
#else
#define USE(run) \
	int main(void) \
	{ \
		return run(); \
	}
#endif
