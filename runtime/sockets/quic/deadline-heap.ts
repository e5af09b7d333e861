/** A binary heap of deadlines. Each member knows its position in the heap, so that its deadline can be changed. */

/** A member of a heap. */
export interface Deadline {
	/** Time at which the member is due, by `performance.now()`. */
	due: number;
	/** Position in the heap, set by the heap; −1 while the member is in none. */
	place: number;
}

/** Finds the earliest of many deadlines; see the top of this file. */
export class DeadlineHeap<Member extends Deadline> {
	readonly #members: Member[] = [];

	/** Time of the earliest deadline, by `performance.now()`; Infinity if there is none. */
	get next(): number {
		return this.#members[0]?.due ?? Infinity;
	}

	get size(): number {
		return this.#members.length;
	}

	/** Adds a member, or changes its deadline. A deadline of Infinity removes the member. */
	set(member: Member, due: number): void {
		if (due === Infinity) {
			this.delete(member);
			return;
		}
		const previousDue = member.due;
		member.due = due;
		if (member.place < 0) {
			member.place = this.#members.length;
			this.#members.push(member);
			this.#rise(member);
		} else if (due < previousDue) this.#rise(member);
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
			const parentIndex = (at - 1) >> 1;
			const parent = members[parentIndex]!;
			if (parent.due <= member.due) break;
			members[at] = parent;
			parent.place = at;
			at = parentIndex;
		}
		members[at] = member;
		member.place = at;
	}

	#sink(member: Member): void {
		const members = this.#members;
		let at = member.place;
		for (;;) {
			let childIndex = at * 2 + 1;
			if (childIndex >= members.length) break;
			if (childIndex + 1 < members.length && members[childIndex + 1]!.due < members[childIndex]!.due) childIndex++;
			const child = members[childIndex]!;
			if (child.due >= member.due) break;
			members[at] = child;
			child.place = at;
			at = childIndex;
		}
		members[at] = member;
		member.place = at;
	}
}
