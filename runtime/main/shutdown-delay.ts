/** Implements the `shutdown_delay` setting: the server keeps serving for a while after it is asked to stop. */
import type { ProcessLog } from '../logs/process-log.ts';
import { CONTROL_STOPS_AT } from '../threads/control-words.ts';
import { MAX_TIMER_MS } from '../threads/within.ts';

/**
 * Waits `delayMs`. Meanwhile the server serves as usual and its placeholders announce the stop, so that load
 * balancers have time to notice that it is no longer ready.
 */
export async function waitBeforeStop(delayMs: number | undefined, control: Int32Array, log: ProcessLog): Promise<void> {
	if (delayMs === undefined || delayMs === 0) return;
	log.log('info', 'runtime', 'stopping after a delay', { delay_ms: delayMs });
	Atomics.store(control, CONTROL_STOPS_AT, Math.ceil((Date.now() + delayMs) / 1000));
	await new Promise(resolve => setTimeout(resolve, Math.min(delayMs, MAX_TIMER_MS)));
}
