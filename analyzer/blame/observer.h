/*
 * analyzer/blame/observer.h: who looks at calls as they are accounted for: findings, through their detectors.
 */
#ifndef CUDASPY_OBSERVER_H
#define CUDASPY_OBSERVER_H

#include "account/account.h"

/* A call of the application that has returned, as an observer sees it. */
struct observed {
	struct accounting *accounts;
	struct thread_account *account;
	const struct record *record;
	const struct completed_call *call; /* its buckets, where it was divided */
	const struct call_class *class;
	const struct gpu_waits *waits;
	uint8_t contract; /* enum spy_contract */
	bool cold;
};

/* A thread waited for a call that is a case of a site. */
struct others_wait {
	const struct thread *waiter;
	double ns; /* of a wait for which others stand, too: times as many */
	bool sure; /* it had no work of its own to wait for */
	bool working; /* its process was at work: phase.h */
	bool across_devices;
};

/*
 * Looks for problems (findings/site.h): sees each call that took longer than its own work or failed, of
 * some contracts every call, and those that follow in a thread of which a claim is open. What
 * others wait for at a call it took is shown to it when it is known.
 */
struct observer {
	/* Contracts, a bit for each: of all calls; of copies with a pageable side; of those between
	 * GPUs; of those that continue a run. */
	uint32_t always, pageable, peer, in_run;
	struct site *(*on_call)(struct observer *observer, const struct observed *call);
	void (*on_others_wait)(struct site *site, const struct others_wait *wait);
};

#endif
