/** Implements the `shutdown_delay` setting: the server keeps serving for a while after it is asked to stop. */
import type { ProcessLog } from '../logs/process-log.ts';
import { CONTROL_STOPS_AT } from '../threads/control-words.ts';
import { MAX_TIMER_MS } from '../threads/within.ts';

/**
 * Waits `delay` milliseconds. Meanwhile the server serves as usual and its placeholders announce the stop, so that load
 * balancers have time to notice that it is no longer ready.
 */
export async function waitBeforeStop(delay: number | undefined, control: Int32Array, log: ProcessLog): Promise<void> {
	if (delay === undefined || delay === 0) return;
	log.log('info', 'runtime', 'stopping after a delay', { delay_ms: delay });
	Atomics.store(control, CONTROL_STOPS_AT, Math.ceil((Date.now() + delay) / 1000));
	await new Promise(resolve => setTimeout(resolve, Math.min(delay, MAX_TIMER_MS)));
}
