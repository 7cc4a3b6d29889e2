/*
 * analyzer/live/recent_see.h: what recent.c hands records to, as it reads them in the order of time.
 */
#ifndef CUDASPY_LIVE_RECENT_SEE_H
#define CUDASPY_LIVE_RECENT_SEE_H

#include "recent.h"

/* recent_work.c: a call that has not failed, with what `function` says of it. */
void recent_see_work(struct recent *recent, const struct function *function,
		     const struct record *record);
void recent_release_work(struct recent *recent);

/* The work that the thread handed over last, as far as it is its stream's last; NULL: it is not. */
struct recent_work *recent_handed_over(struct recent *recent, const struct thread *thread);

/* The piece has ended, and with it all that was in front of it. */
void recent_ended(struct recent *recent, const struct recent_piece *piece);

/* recent_comms.c */
void recent_see_comm(struct recent *recent, const struct record *record);
void recent_see_collective(struct recent *recent, const struct record *record);
void recent_see_ran(struct recent *recent, const struct record *record);
void recent_finish_comms(struct recent *recent); /* behind the last record */
void recent_release_comms(struct recent *recent);

#endif
