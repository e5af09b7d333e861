/** Deadlines in order: a binary heap whose members know their position, so that each can be moved. */

/** A member of a heap. */
export interface Deadline {
	/** When the member is due, by `performance.now()`. */
	due: number;
	/** Position in the heap, set by the heap; −1 while the member is in none. */
	place: number;
}

/** Keeps deadlines ordered, so that the earliest one is known. */
export class DeadlineHeap<Member extends Deadline> {
	readonly #members: Member[] = [];

	/** When the earliest deadline is due; Infinity if there is none. */
	get next(): number {
		return this.#members[0]?.due ?? Infinity;
	}

	get size(): number {
		return this.#members.length;
	}

	/** Adds a member, or changes its deadline. Infinity removes it. */
	set(member: Member, due: number): void {
		if (due === Infinity) {
			this.delete(member);
			return;
		}
		const before = member.due;
		member.due = due;
		if (member.place < 0) {
			member.place = this.#members.length;
			this.#members.push(member);
			this.#rise(member);
		} else if (due < before) this.#rise(member);
		else this.#sink(member);
	}

	delete(member: Member): void {
		const { place } = member;
		if (place < 0) return;
		member.place = -1;
		const last = this.#members.pop()!;
		if (last === member) return;
		last.place = place;
		this.#members[place] = last;
		this.#rise(last);
		this.#sink(last);
	}

	/** Removes and returns the earliest member if it is due; otherwise returns undefined. */
	take(now: number): Member | undefined {
		const first = this.#members[0];
		if (first === undefined || first.due > now) return undefined;
		this.delete(first);
		return first;
	}

	#rise(member: Member): void {
		const members = this.#members;
		let at = member.place;
		while (at > 0) {
			const above = (at - 1) >> 1;
			const other = members[above]!;
			if (other.due <= member.due) break;
			members[at] = other;
			other.place = at;
			at = above;
		}
		members[at] = member;
		member.place = at;
	}

	#sink(member: Member): void {
		const members = this.#members;
		let at = member.place;
		for (;;) {
			let below = at * 2 + 1;
			if (below >= members.length) break;
			if (below + 1 < members.length && members[below + 1]!.due < members[below]!.due) below++;
			const other = members[below]!;
			if (other.due >= member.due) break;
			members[at] = other;
			other.place = at;
			at = below;
		}
		members[at] = member;
		member.place = at;
	}
}
