/** Counts the responses of a machine and the errors among them, since it has loaded its publication and shortly before a load. */
import { MIN_RATED_RESPONSES, type TrialTraffic } from '../cluster/rollout-decision.ts';

/** Number of samples, and thus of reports, over which the error rate before a load is computed. */
const MAX_SAMPLES = 60;

/** Numbers of responses since the process started. */
export interface ProcessTraffic {
	readonly requests: number;
	readonly serverErrors: number;
}

/** The traffic of the publication that the machine serves. */
export class PublicationTraffic {
	readonly #read: () => ProcessTraffic;
	#atLoad: ProcessTraffic;
	#errorRateBefore: number;
	/** The latest samples since the publication was loaded, oldest first. */
	readonly #samples: ProcessTraffic[] = [];

	/** @param errorRateBefore The share of server errors before the publication was loaded, 0 to 1. */
	constructor(read: () => ProcessTraffic, errorRateBefore: number) {
		this.#read = read;
		this.#atLoad = read();
		this.#errorRateBefore = errorRateBefore;
	}

	get errorRateBefore(): number {
		return this.#errorRateBefore;
	}

	get sinceLoad(): TrialTraffic {
		const { requests, serverErrors } = this.#read();
		return {
			responses: requests - this.#atLoad.requests,
			serverErrors: serverErrors - this.#atLoad.serverErrors,
			errorRateBefore: this.#errorRateBefore,
		};
	}

	/** Takes a sample for {@link recentErrorRate}. Must be called with each report. */
	takeSample(): void {
		this.#samples.push(this.#read());
		if (this.#samples.length > MAX_SAMPLES) this.#samples.shift();
	}

	/** Returns the share of server errors in the last minute, or 0 if there were too few responses to tell. */
	recentErrorRate(): number {
		const first = this.#samples[0];
		if (!first) return 0;
		const { requests, serverErrors } = this.#read();
		const responses = requests - first.requests;
		return responses < MIN_RATED_RESPONSES ? 0 : (serverErrors - first.serverErrors) / responses;
	}

	/** Begins to count the responses of another publication. `errorRateBefore` is the recent error rate before its load. */
	onLoad(errorRateBefore: number): void {
		this.#atLoad = this.#read();
		this.#errorRateBefore = errorRateBefore;
		this.#samples.length = 0;
	}
}
