/*
 * analyzer/base/function_name.h: a function of the program by a name that a person writes: arguments, template arguments and
 * what is around it may be left out.
 */
#ifndef CUDASPY_FUNCTION_NAME_H
#define CUDASPY_FUNCTION_NAME_H

#include <stdbool.h>

/*
 * Is the function meant? "scale", "Field::scale" and "scale(int)" mean "ns::Field<float>::scale(int) const", "forward" and
 * "Net.forward" mean "Net.forward". Demangled names of C++, names of C, qualified names of Python.
 */
bool function_name_fits(const char *function, const char *asked);

/* What a person writes for it at least: "scale", "forward". Owned by the caller. */
char *function_name_short(const char *function);

#endif
