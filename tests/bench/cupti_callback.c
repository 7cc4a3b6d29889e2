/*
 * tests/bench/cupti_callback.c: the first peer that cudaspy is measured against: CUPTI callbacks at
 * entry and exit of every runtime and driver call, doing the least a tracer can: reading the time.
 * A library to preload. The subscription happens in the constructor, before main.
 */
#include "cupti_load.h"
#include <x86intrin.h>

static __thread volatile unsigned long long last;

static void CUPTIAPI on_call(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
			     const void *data)
{
	(void)user;
	(void)domain;
	(void)id;
	(void)data;
	last = __rdtsc();
}

__attribute__((constructor)) static void start(void)
{
	const char *who = "cupti_callback";
	CUpti_SubscriberHandle subscriber;

	if (cupti_load(who) ||
	    cupti_failed(who, "cuptiSubscribe", cupti.cuptiSubscribe(&subscriber, on_call, NULL)))
		return;
	cupti_failed(who, "runtime domain",
		     cupti.cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API));
	cupti_failed(who, "driver domain",
		     cupti.cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API));
}
