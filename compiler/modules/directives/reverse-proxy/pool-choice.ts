/** Chooses among the upstreams of a pool. Backups are chosen only while no other upstream is available. */
import type { Exchange } from '../../../exchange/exchange.ts';
import type {
	BalancerContext,
	BalancerView,
	BalanceSettings,
	UpstreamChoice,
} from '../../providers/balancers/balancer.ts';
import { compileBalance } from '../../providers/balancers/index.ts';
import { parseUpstream } from './upstream-address.ts';

/** Presents some of a pool's upstreams to a balancing policy as if they were the complete pool. */
class PoolSubset implements BalancerView {
	readonly #poolIndexes: readonly number[];
	#pool: BalancerView | undefined;

	constructor(indexes: readonly number[]) {
		this.#poolIndexes = indexes;
	}

	/** Returns the index of the chosen upstream in the pool, or −1. */
	choose(choice: UpstreamChoice, pool: BalancerView, x: Exchange): number {
		this.#pool = pool;
		return this.#poolIndexes[choice(this, x)] ?? -1;
	}

	get size(): number {
		return this.#poolIndexes.length;
	}

	isAvailable(index: number): boolean {
		return this.#pool!.isAvailable(this.#poolIndexes[index]!);
	}

	requestsInFlight(index: number): number {
		return this.#pool!.requestsInFlight(this.#poolIndexes[index]!);
	}

	addressOf(index: number): string {
		return this.#pool!.addressOf(this.#poolIndexes[index]!);
	}

	latencyMs(index: number): number | undefined {
		return this.#pool!.latencyMs(this.#poolIndexes[index]!);
	}

	nextTurn(): number {
		return this.#pool!.nextTurn();
	}

	random(bound: number): number {
		return this.#pool!.random(bound);
	}
}

/**
 * Returns for each of `addresses` whether it is a backup. Throws RangeError if `backupAddresses` contains an address that is not
 * in `addresses`.
 */
function backupFlags(addresses: readonly string[], backupAddresses: readonly string[]): readonly boolean[] {
	const parseDials = (texts: readonly string[]): string[] =>
		texts.flatMap(text => {
			const parsedUpstream = parseUpstream(text);
			if (parsedUpstream.kind === 'static') return parsedUpstream.addresses.map(({ dial }) => dial);
			throw new RangeError(`A pool with backups cannot have \`${text}\`, which is resolved for each request.`);
		});
	const allDials = parseDials(addresses);
	const backupDials = new Set(parseDials(backupAddresses));
	for (const dial of backupDials)
		if (!allDials.includes(dial)) throw new RangeError(`The backup \`${dial}\` is not in \`to\`.`);
	if (backupDials.size === new Set(allDials).size) throw new RangeError('All upstreams are backups; one must not be.');
	return allDials.map(dial => backupDials.has(dial));
}

/** Returns a choice that tries the backups only if `primaryChoice` finds no available upstream that is not a backup. */
function compileChoiceWithBackups(
	primaryChoice: UpstreamChoice,
	backupChoice: UpstreamChoice,
	isBackupByIndex: readonly boolean[],
): UpstreamChoice {
	const indexesOf = (isBackup: boolean): number[] =>
		isBackupByIndex.flatMap((flag, index) => (flag === isBackup ? [index] : []));
	const primaries = new PoolSubset(indexesOf(false));
	const backups = new PoolSubset(indexesOf(true));
	return (view, x) => {
		const primaryIndex = primaries.choose(primaryChoice, view, x);
		return primaryIndex === -1 ? backups.choose(backupChoice, view, x) : primaryIndex;
	};
}

/** Compiles the choice among a pool's upstreams. Throws RangeError if settings that match the schema contradict each other. */
export function compilePoolBalance(
	{ to, balance, backup, dynamic }: PoolBalance,
	cx: Omit<BalancerContext, 'compileChoice'>,
): UpstreamChoice {
	const primaryChoice = compileBalance(balance, cx);
	if (backup === undefined || backup.length === 0) return primaryChoice;
	if (dynamic !== undefined) throw new RangeError('`backup` and `dynamic` cannot be combined.');
	// Backups have no weights, so they are chosen in turn.
	const isWeighted = balance?.policy === 'weighted_round_robin';
	const backupChoice = compileBalance(isWeighted ? { policy: 'round_robin' } : balance, cx);
	return compileChoiceWithBackups(primaryChoice, backupChoice, backupFlags(to, backup));
}

/** The settings of a pool on which the choice depends. */
export interface PoolBalance {
	readonly to: readonly string[];
	readonly balance?: BalanceSettings | undefined;
	readonly backup?: readonly string[] | undefined;
	readonly dynamic?: unknown;
}
