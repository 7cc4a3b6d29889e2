/*
 * analyzer/text/nvml.h: words for what NVML says. Used by reports and by what is shown of running programs.
 */
#ifndef CUDASPY_TEXT_NVML_H
#define CUDASPY_TEXT_NVML_H

/* Of NVML's bits of reasons (nvmlClocksThrottleReason…) what slows a GPU down; NULL: a GPU that is idle, or clocks that somebody has
 * set, are no trouble. */
static inline const char *text_nvml_limit(unsigned int bit)
{
	switch (bit) {
	case 2:
		return "its power limit";
	case 3:
		return "the hardware: heat or power";
	case 5:
		return "heat, by software";
	case 6:
		return "heat, by the hardware";
	case 7:
		return "the power supply";
	default:
		return NULL;
	}
}

#endif
