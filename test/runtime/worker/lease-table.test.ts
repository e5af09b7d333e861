/** Leases of shared resources, which are found by key and have reference counts. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { LeaseRegistry, leaseKey } from '../../../runtime/threads/lease-registry.ts';

const leases = suite('leases');

leases('equal settings have equal keys, whatever the order of their members', () => {
	assert.is(leaseKey('pool', { to: ['a'], name: 'x' }), leaseKey('pool', { name: 'x', to: ['a'] }));
	assert.is.not(leaseKey('pool', { to: ['a'] }), leaseKey('files', { to: ['a'] }));
	assert.is.not(leaseKey('pool', { to: ['a', 'b'] }), leaseKey('pool', { to: ['b', 'a'] }));
	const long = { to: Array.from({ length: 100 }, (_, index) => `host${index}:80`) };
	assert.ok(leaseKey('pool', long).length < 100);
	assert.is(leaseKey('pool', long), leaseKey('pool', { to: [...long.to] }));
});

leases('a resource is opened once and closed by its last user', () => {
	const registry = new LeaseRegistry();
	let opened = 0;
	let closedCount = 0;
	const open = () => ({ value: ++opened, close: () => void closedCount++ });
	assert.is(registry.acquire('a', open), 1);
	assert.is(registry.acquire('a', open), 1);
	registry.release('a');
	assert.is(closedCount, 0);
	registry.release('a');
	assert.is(closedCount, 1);
	registry.release('a');
	assert.is(closedCount, 1);
	assert.is(registry.acquire('a', open), 2);
});

leases('a resource that fails to open is not kept', () => {
	const registry = new LeaseRegistry();
	assert.throws(() =>
		registry.acquire('a', () => {
			throw new Error('no');
		}),
	);
	assert.is(registry.size, 0);
	assert.is(
		registry.acquire('a', () => ({ value: 'yes', close: () => {} })),
		'yes',
	);
});

leases.run();
