/*
 * tests/sim/runtime_prop.h: cudaDeviceProp of one generation: define PROP_GEN (11, 12 or 13) and
 * PROP_NAME, then include. Expanded from prop.def by runtime_device.c and check_layout.c.
 */
#define FIELD_OF_PROP(type, name, suffix, attr) type name suffix;
#define NO_FIELD(type, name, suffix, attr)
#define ALL FIELD_OF_PROP
#if PROP_GEN <= 12
#define OLD FIELD_OF_PROP
#else
#define OLD NO_FIELD
#endif
#if PROP_GEN >= 12
#define NEW FIELD_OF_PROP
#else
#define NEW NO_FIELD
#endif
#if PROP_GEN == 12
#define ONLY12 FIELD_OF_PROP
#else
#define ONLY12 NO_FIELD
#endif
#if PROP_GEN == 13
#define ONLY13 FIELD_OF_PROP
#else
#define ONLY13 NO_FIELD
#endif

struct PROP_NAME {
#include "prop.def"
};

#undef FIELD_OF_PROP
#define FIELD_OF_PROP(type, name, suffix, attr) \
	{offsetof(struct PROP_NAME, name), sizeof(type), sizeof(((struct PROP_NAME *)0)->name), \
	 attr},

#ifdef PROP_TABLE
static const struct {
	unsigned short offset, element, bytes;
	short attr;
} PROP_TABLE[] = {
#include "prop.def"
};
#endif

#undef FIELD_OF_PROP
#undef NO_FIELD
#undef ALL
#undef OLD
#undef NEW
#undef ONLY12
#undef ONLY13
#undef PROP_GEN
#undef PROP_NAME
#undef PROP_TABLE
