/** The listeners of a predecessor, and which of them a new configuration uses. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { InheritedSockets } from '../../../runtime/listeners/inherited-sockets.ts';
import type { ListenerAddress } from '../../../runtime/listeners/listener-address.ts';

const inherited = suite('inherited sockets');

/** Returns listeners with the given keys; the first descriptor is 0. Every socket is bound to 127.0.0.1, which only matters for names. */
const socketsOf = (...keys: string[]): InheritedSockets =>
	new InheritedSockets(
		{
			listeners: keys.map((key, at) => ({ key, port: 80, descriptors: [at] })),
			held: [{ key: 'unix//run/a', descriptor: 7 }],
			passed: [],
		},
		descriptors => new Map(descriptors.map(descriptor => [descriptor, '127.0.0.1:80'])),
	);

const addressOf = (key: string): ListenerAddress => ({ key, host: '', port: 80, scheme: 'http' });

const find = (sockets: InheritedSockets, key: string): readonly number[] | 'none' | undefined => {
	const address = sockets.findDeferred(addressOf(key));
	return address && (address.inherited ?? 'none');
};

inherited('an address that is written differently keeps its sockets', () => {
	for (const [before, after] of [
		['tcp/:80', 'tcp/[::]:80'],
		['tcp/[::]:80', 'tcp/:80'],
		['tcp/[0:0::1]:80', 'tcp/[::1]:80'],
		['tcp/[fe80:0::1%eth0]:80', 'tcp/[fe80::1%eth0]:80'],
	] as const) {
		const sockets = socketsOf('tcp/127.0.0.1:80', before);
		assert.equal(find(sockets, after), [1], `${before} ${after}`);
		assert.equal(sockets.unusedKeys(new Set([after, 'unix//run/a'])), ['tcp/127.0.0.1:80']);
		assert.is(sockets.inheritedKeyOf(after), before);
	}
});

inherited('other addresses on the same port get no sockets, and wait until the predecessor has handed over', () => {
	for (const [before, after] of [
		['tcp/:80', 'tcp/127.0.0.1:80'],
		['tcp/:80', 'tcp/0.0.0.0:80'],
		['tcp/:80', 'tcp6/[::]:80'],
		['tcp/localhost:80', 'tcp/127.0.0.2:80'],
		['tcp/localhost:80', 'tcp/[::1]:80'],
		['tcp/[fe80::1%eth0]:80', 'tcp/[fe80::1%eth1]:80'],
	] as const) {
		const sockets = socketsOf(before);
		assert.is(find(sockets, after), 'none', `${before} ${after}`);
		assert.equal(sockets.unusedKeys(new Set([after])), [before, 'unix//run/a']);
		assert.is(sockets.inheritedKeyOf(after), after);
	}
});

inherited(
	'a host name that becomes the address of its sockets keeps them, and so does an address that becomes its host name',
	async () => {
		for (const [before, after] of [
			['tcp/web.internal:80', 'tcp/127.0.0.1:80'],
			['tcp/127.0.0.1:80', 'tcp/localhost:80'],
			['tcp/web.internal:80', 'tcp/localhost:80'],
			['tcp/LocalHost:80', 'tcp/localhost:80'],
		] as const) {
			const sockets = socketsOf('tcp/127.0.0.2:80', before);
			await sockets.resolveNames([addressOf(after)]);
			assert.equal(find(sockets, after), [1], `${before} ${after}`);
			assert.equal(find(sockets, after), [1], `${before} ${after}, again`);
			assert.equal(sockets.unusedKeys(new Set([after, 'unix//run/a'])), ['tcp/127.0.0.2:80']);
			assert.is(sockets.inheritedKeyOf(after), before);
		}
	},
);

inherited('a host name that is also a part of its key is replaced by its address', async () => {
	const sockets = new InheritedSockets(
		{ listeners: [{ key: 'tcp/127.0.0.1:80', port: 80, descriptors: [0] }], held: [], passed: [] },
		() => new Map(),
		async () => '127.0.0.1',
	);
	await sockets.resolveNames([addressOf('tcp/tcp:80')]);
	assert.equal(find(sockets, 'tcp/tcp:80'), [0]);
});

inherited('host names that keep their sockets, or whose port is new, are not looked up', async () => {
	const lookedUp: string[] = [];
	const sockets = new InheritedSockets(
		{ listeners: [{ key: 'tcp/same.internal:80', port: 80, descriptors: [0] }], held: [], passed: [] },
		() => new Map([[0, '127.0.0.1:80']]),
		async name => {
			lookedUp.push(name);
			return '127.0.0.1';
		},
	);
	const addresses = ['tcp/same.internal:80', 'tcp/new.internal:80'].map(addressOf);
	await sockets.resolveNames([...addresses, { ...addressOf('tcp/other.internal:81'), port: 81 }]);
	assert.equal(lookedUp, ['new.internal']);
	assert.equal(find(sockets, 'tcp/same.internal:80'), [0]);
});

inherited(
	'if several listeners have the same address, each keeps its sockets or gets those of another one',
	async () => {
		const sockets = socketsOf('tcp/localhost:80', 'tcp/127.0.0.1:80');
		const keys = ['tcp/LOCALHOST:80', 'tcp/127.0.0.1:80'];
		await sockets.resolveNames(keys.map(addressOf));
		assert.equal(
			keys.map(key => find(sockets, key)),
			[[0], [1]],
		);
		assert.equal(sockets.unusedKeys(new Set([...keys, 'unix//run/a'])), []);
	},
);

inherited('a host name does not get a socket that a service manager has passed', async () => {
	const sockets = new InheritedSockets({
		listeners: [{ key: 'tcp/127.0.0.1:80', port: 80, descriptors: [0] }],
		held: [],
		passed: [{ number: 3, name: 'web', descriptor: 0 }],
	});
	await sockets.resolveNames([addressOf('tcp/localhost:80')]);
	assert.is(find(sockets, 'tcp/localhost:80'), 'none');
	assert.equal(find(sockets, 'tcp/127.0.0.1:80'), [0]);
});

inherited('a name that cannot be resolved gets no sockets', async () => {
	const sockets = socketsOf('tcp/127.0.0.1:80');
	await sockets.resolveNames([addressOf('tcp/unknown.invalid:80')]);
	assert.is(find(sockets, 'tcp/unknown.invalid:80'), 'none');
});

inherited('two listeners of the new configuration never get the same sockets', async () => {
	const sockets = socketsOf('tcp/localhost:80');
	const keys = ['tcp/127.0.0.1:80', 'tcp/localhost:80'];
	await sockets.resolveNames(keys.map(addressOf));
	assert.equal(
		keys.map(key => find(sockets, key)),
		[[0], 'none'],
	);
});

inherited('a listener on another port is bound at once', () => {
	assert.is(socketsOf('tcp/:81').findDeferred({ key: 'tcp/:82', host: '', port: 82, scheme: 'http' }), undefined);
});

inherited.run();
