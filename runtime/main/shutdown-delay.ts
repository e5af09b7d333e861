/** The time between the wish to stop and the stop (`shutdown_delay`). */
import type { ProcessLog } from '../logs/process-log.ts';
import { CONTROL_STOPS_AT } from '../threads/messages.ts';
import { LONGEST_TIMER } from './within.ts';

/**
 * Waits `delay` milliseconds, during which the server serves as ever and its placeholders tell of the stop: load balancers
 * get time to see that it is not ready any more.
 */
export async function waitBeforeStop(delay: number | undefined, control: Int32Array, log: ProcessLog): Promise<void> {
	if (delay === undefined || delay === 0) return;
	log.log('info', 'runtime', 'a stop begins after a delay', { delay_ms: delay });
	Atomics.store(control, CONTROL_STOPS_AT, Math.ceil((Date.now() + delay) / 1000));
	await new Promise(resolve => setTimeout(resolve, Math.min(delay, LONGEST_TIMER)));
}
