/** A sorted set of Redis: members with scores. The member with the lowest score is found quickly. */

interface ScoredMember {
	readonly member: string;
	readonly score: number;
}

/** Members, ordered by their scores, and by their names if the scores are equal. */
export class SortedSet {
	readonly #scores = new Map<string, number>();
	/**
	 * A binary heap with the lowest-scoring member at index 0. It may also contain outdated scores of members, which are skipped.
	 */
	readonly #heap: ScoredMember[] = [];

	get scores(): ReadonlyMap<string, number> {
		return this.#scores;
	}

	add(member: string, score: number): void {
		if (this.#scores.get(member) === score) return;
		this.#scores.set(member, score);
		this.#push({ member, score });
	}

	remove(member: string): void {
		this.#scores.delete(member);
	}

	/** Removes and returns the member with the lowest score; undefined if the set is empty. */
	popLeast(): ScoredMember | undefined {
		const least = this.#least();
		if (least === undefined) return undefined;
		this.#scores.delete(least.member);
		this.#popFirst();
		return least;
	}

	/** Removes the members whose scores are at most `score`, and returns them. */
	removeUpTo(score: number): string[] {
		const removed: string[] = [];
		for (let least = this.#least(); least !== undefined && least.score <= score; least = this.#least()) {
			removed.push(least.member);
			this.popLeast();
		}
		return removed;
	}

	/** Returns the members whose scores are greater than `score`, in order. */
	membersAbove(score: number): string[] {
		return [...this.#scores]
			.map(([member, memberScore]) => ({ member, score: memberScore }))
			.filter(scored => scored.score > score)
			.sort((one, other) => (isLess(one, other) ? -1 : 1))
			.map(({ member }) => member);
	}

	#least(): ScoredMember | undefined {
		for (let first = this.#heap[0]; first !== undefined; first = this.#heap[0]) {
			if (this.#scores.get(first.member) === first.score) return first;
			this.#popFirst();
		}
		return undefined;
	}

	#push(scored: ScoredMember): void {
		const heap = this.#heap;
		let index = heap.length;
		while (index > 0) {
			const parent = (index - 1) >> 1;
			if (isLess(heap[parent]!, scored)) break;
			heap[index] = heap[parent]!;
			index = parent;
		}
		heap[index] = scored;
	}

	#popFirst(): void {
		const heap = this.#heap;
		const last = heap.pop()!;
		if (heap.length === 0) return;
		let index = 0;
		for (;;) {
			let child = 2 * index + 1;
			if (child >= heap.length) break;
			if (child + 1 < heap.length && isLess(heap[child + 1]!, heap[child]!)) child++;
			if (isLess(last, heap[child]!)) break;
			heap[index] = heap[child]!;
			index = child;
		}
		heap[index] = last;
	}
}

function isLess(one: ScoredMember, other: ScoredMember): boolean {
	return one.score < other.score || (one.score === other.score && one.member < other.member);
}
