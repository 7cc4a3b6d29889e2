/*
 * tests/e2e/programs/fake_layers.h: which rows of entrypoints.def the library of this GENERATION has:
 * FAKE_<layer>(text) is text for those and nothing for the others.
 */
#if GENERATION == 0
#define FAKE_DRIVER(...) __VA_ARGS__
#else
#define FAKE_DRIVER(...)
#endif
#if GENERATION == 11
#define FAKE_11(...) __VA_ARGS__
#else
#define FAKE_11(...)
#endif
#if GENERATION == 12
#define FAKE_12(...) __VA_ARGS__
#else
#define FAKE_12(...)
#endif
#if GENERATION == 13
#define FAKE_13(...) __VA_ARGS__
#else
#define FAKE_13(...)
#endif
#define FAKE_RT(...) FAKE_11(__VA_ARGS__) FAKE_12(__VA_ARGS__) FAKE_13(__VA_ARGS__)
#define FAKE_RT11(...) FAKE_11(__VA_ARGS__)
#define FAKE_RT12(...) FAKE_12(__VA_ARGS__)
#define FAKE_RT13(...) FAKE_13(__VA_ARGS__)
#define FAKE_RT11_12(...) FAKE_11(__VA_ARGS__) FAKE_12(__VA_ARGS__)
#define FAKE_RT12_13(...) FAKE_12(__VA_ARGS__) FAKE_13(__VA_ARGS__)
