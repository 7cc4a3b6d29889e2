/*
 * tests/sim/runtime_entries.h: RUNTIME_ENTRY(name) for every entry point that libcudart of generation
 * RT_GEN exports. Included by runtime_stubs.c and by runtime.map.in (the version script).
 */
#define NOT_AN_ENTRY(name)
#define LAYER_DRIVER NOT_AN_ENTRY
#define LAYER_RT RUNTIME_ENTRY
#if RT_GEN == 11
#define LAYER_RT11 RUNTIME_ENTRY
#define LAYER_RT12 NOT_AN_ENTRY
#define LAYER_RT13 NOT_AN_ENTRY
#define LAYER_RT11_12 RUNTIME_ENTRY
#define LAYER_RT12_13 NOT_AN_ENTRY
#elif RT_GEN == 12
#define LAYER_RT11 NOT_AN_ENTRY
#define LAYER_RT12 RUNTIME_ENTRY
#define LAYER_RT13 NOT_AN_ENTRY
#define LAYER_RT11_12 RUNTIME_ENTRY
#define LAYER_RT12_13 RUNTIME_ENTRY
#else
#define LAYER_RT11 NOT_AN_ENTRY
#define LAYER_RT12 NOT_AN_ENTRY
#define LAYER_RT13 RUNTIME_ENTRY
#define LAYER_RT11_12 NOT_AN_ENTRY
#define LAYER_RT12_13 RUNTIME_ENTRY
#endif
#define ENTRY(name, layer, record, contract, inspector) LAYER_##layer(name)
#include "cudaspy/entrypoints.def"
#undef ENTRY
