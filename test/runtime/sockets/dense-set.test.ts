/** A set whose members store their own positions holds the same members as a `Set`, whatever is added and deleted. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { DenseSet, type DenseSetMember } from '../../../runtime/sockets/dense-set.ts';

const sets = suite('dense sets');

const createMember = (): DenseSetMember => ({ positionInSet: -1 });

sets('10,000 changes leave the same members as those of a Set', () => {
	const members = Array.from({ length: 50 }, createMember);
	const dense = new DenseSet<DenseSetMember>();
	const wanted = new Set<DenseSetMember>();
	let seed = 1;
	for (let change = 0; change < 10_000; change++) {
		seed = (seed * 48_271) % 2_147_483_647;
		const member = members[seed % members.length]!;
		if (dense.has(member)) assert.is(dense.delete(member), wanted.delete(member));
		else {
			dense.add(member);
			wanted.add(member);
		}
		assert.is(dense.size, wanted.size);
		if (change % 100 === 0) for (const one of members) assert.is(dense.has(one), wanted.has(one));
	}
	assert.equal(new Set(dense), wanted);
});

sets('an object that is in no set, or in another one, is not deleted', () => {
	const one = new DenseSet<DenseSetMember>();
	const other = new DenseSet<DenseSetMember>();
	const [first, second] = [createMember(), createMember()];
	one.add(first);
	assert.not(other.delete(first));
	other.add(second);
	assert.not(other.delete(first));
	assert.ok(one.has(first));
	assert.ok(one.delete(first));
	assert.not(one.delete(first));
	other.add(first);
	assert.equal([...other], [second, first]);
});

sets('members can be deleted and added during an iteration', () => {
	const set = new DenseSet<DenseSetMember>();
	const members = Array.from({ length: 5 }, createMember);
	for (const member of members) set.add(member);
	const visited: DenseSetMember[] = [];
	for (const member of set) {
		visited.push(member);
		set.delete(member);
		set.add(createMember());
	}
	assert.equal(visited, members);
	assert.is(set.size, 5);
});

sets('taking all members leaves an empty set, to which they can be added again', () => {
	const set = new DenseSet<DenseSetMember>();
	const members = [createMember(), createMember()];
	for (const member of members) set.add(member);
	assert.equal(set.takeAll(), members);
	assert.is(set.size, 0);
	for (const member of members) {
		assert.not(set.has(member));
		set.add(member);
	}
	assert.equal([...set], members);
});

sets.run();
