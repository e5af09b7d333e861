/** A binary heap of deadlines. Each member knows its position in the heap, so that its deadline can be changed. */

/** A member of a {@link DeadlineHeap}. */
export interface Deadline {
	/** Time at which the member is due, by `performance.now()`. */
	dueAt: number;
	/** Position in the heap, set by the heap; −1 while the member is in no heap. */
	heapIndex: number;
}

/** A binary heap that finds the earliest of many deadlines. */
export class DeadlineHeap<Member extends Deadline> {
	readonly #members: Member[] = [];

	/** Time of the earliest deadline, by `performance.now()`; Infinity if there is none. */
	get earliestDueAt(): number {
		return this.#members[0]?.dueAt ?? Infinity;
	}

	get size(): number {
		return this.#members.length;
	}

	/** Adds a member, or changes its deadline. A deadline of Infinity removes the member. */
	setDeadline(member: Member, dueAt: number): void {
		if (dueAt === Infinity) {
			this.delete(member);
			return;
		}
		const previousDue = member.dueAt;
		member.dueAt = dueAt;
		if (member.heapIndex < 0) {
			member.heapIndex = this.#members.length;
			this.#members.push(member);
			this.#moveUp(member);
		} else if (dueAt < previousDue) this.#moveUp(member);
		else this.#moveDown(member);
	}

	delete(member: Member): void {
		const { heapIndex } = member;
		if (heapIndex < 0) return;
		member.heapIndex = -1;
		const lastMember = this.#members.pop()!;
		if (lastMember === member) return;
		lastMember.heapIndex = heapIndex;
		this.#members[heapIndex] = lastMember;
		this.#moveUp(lastMember);
		this.#moveDown(lastMember);
	}

	/** Removes and returns the earliest member if it is due; otherwise returns undefined. */
	takeDue(now: number): Member | undefined {
		const earliestMember = this.#members[0];
		if (earliestMember === undefined || earliestMember.dueAt > now) return undefined;
		this.delete(earliestMember);
		return earliestMember;
	}

	#moveUp(member: Member): void {
		const members = this.#members;
		let index = member.heapIndex;
		while (index > 0) {
			const parentIndex = (index - 1) >> 1;
			const parent = members[parentIndex]!;
			if (parent.dueAt <= member.dueAt) break;
			members[index] = parent;
			parent.heapIndex = index;
			index = parentIndex;
		}
		members[index] = member;
		member.heapIndex = index;
	}

	#moveDown(member: Member): void {
		const members = this.#members;
		let index = member.heapIndex;
		for (;;) {
			let childIndex = index * 2 + 1;
			if (childIndex >= members.length) break;
			if (childIndex + 1 < members.length && members[childIndex + 1]!.dueAt < members[childIndex]!.dueAt) childIndex++;
			const child = members[childIndex]!;
			if (child.dueAt >= member.dueAt) break;
			members[index] = child;
			child.heapIndex = index;
			index = childIndex;
		}
		members[index] = member;
		member.heapIndex = index;
	}
}
