/** What the machine that coordinates a rollout does: it computes the next state from the reports of all machines, and stores it in Redis. */
import type { Clock } from '../clock/clock.ts';
import { RedisClock } from '../cluster/redis-clock.ts';
import { LOST_AFTER_MS, nextRollout, type Rollout, shiftRollout } from '../cluster/rollout-decision.ts';
import type { FleetReport, SharedRollout } from '../cluster/shared-rollout.ts';
import type { PublicationLog } from './publication-log.ts';

/** Called with a state that this machine has stored in Redis, and its revision. */
type UseState = (rollout: Rollout, revision: string) => void;

/** Advances the rollout. Each machine has one, and uses it while Redis has chosen the machine as the coordinator. */
export class RolloutCoordinator {
	readonly #rollouts: Pick<SharedRollout, 'replace'>;
	readonly #log: PublicationLog;
	readonly #clock: Clock;
	readonly #useState: UseState;
	readonly #redisClock = new RedisClock();
	/** Time, by {@link Clock.threadNow}, before which the rollout is not advanced. */
	#nextDecisionAt = 0;

	constructor(rollouts: Pick<SharedRollout, 'replace'>, log: PublicationLog, clock: Clock, useState: UseState) {
		this.#rollouts = rollouts;
		this.#log = log;
		this.#clock = clock;
		this.#useState = useState;
	}

	/**
	 * Records the time in an answer of Redis, also while the machine is not the coordinator. Returns by how many milliseconds the
	 * clock of Redis was changed since the last answer; 0 if it was not changed.
	 * @param sentAt When the report was sent, by {@link Clock.threadNow}.
	 */
	observeClock(redisNow: number, sentAt: number): number {
		const clockChangeMs = this.#redisClock.observe(redisNow, sentAt, this.#clock.threadNow());
		// A machine is considered lost if the time of its last report is too far from the clock of Redis. After a change of
		// this clock, lost machines can be recognized only once all others have reported again.
		if (clockChangeMs !== 0) this.#nextDecisionAt = this.#clock.threadNow() + LOST_AFTER_MS;
		return clockChangeMs;
	}

	/**
	 * Advances the rollout from the reports of all machines. After a change of the clock, only adjusts the times stored in it.
	 * @param redisNow The time of Redis, in milliseconds since 1970.
	 */
	async coordinate(
		rollout: Rollout,
		revision: string,
		reports: readonly FleetReport[],
		redisNow: number,
		clockChangeMs: number,
	): Promise<void> {
		if (clockChangeMs !== 0) await this.#shift(rollout, revision, clockChangeMs);
		else if (this.#clock.threadNow() >= this.#nextDecisionAt) await this.#advance(rollout, revision, reports, redisNow);
	}

	async #advance(
		rollout: Rollout,
		oldRevision: string,
		reports: readonly FleetReport[],
		redisNow: number,
	): Promise<void> {
		const next = nextRollout(rollout, reports, redisNow);
		if (next === rollout) return;
		const revision = await this.#rollouts.replace(oldRevision, next);
		// If another machine has replaced the state in the meantime, the answer to the next report contains the new state.
		if (revision === undefined) return;
		this.#useState(next, revision);
		const { publication, reason, failedMachine } = next;
		if (next.phase === 'stopped')
			this.#log.write('error', 'rollout stopped', { publication, reason, machine: failedMachine });
		else if (next.phase === 'completed') this.#log.write('info', 'rollout completed', { publication });
		else if (next.wave !== rollout.wave)
			this.#log.write('info', 'rollout extended', { publication, share: next.terms.shares[next.wave] });
	}

	/** Adjusts the times stored in the rollout after the clock of Redis has changed. */
	async #shift(rollout: Rollout, oldRevision: string, clockChangeMs: number): Promise<void> {
		const shifted = shiftRollout(rollout, clockChangeMs);
		const revision = await this.#rollouts.replace(oldRevision, shifted);
		if (revision === undefined) return;
		this.#useState(shifted, revision);
		const seconds = Math.round(clockChangeMs / 1000);
		this.#log.write('warn', 'the clock of Redis has changed, so the rollout pauses for a moment', { seconds });
	}
}
