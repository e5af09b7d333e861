/** Repeatedly ends threads while V8 optimizes their `node:ffi` calls. Usage: node ended-threads.ts COUNT */
import { parentPort, Worker } from 'node:worker_threads';
import { endThread } from '../../runtime/sockets/end-thread.ts';

if (parentPort) {
	const ffi = process.getBuiltinModule('node:ffi');
	const { functions } = ffi.dlopen(null, {
		read: { return: 'int32', arguments: ['int32', 'pointer', 'int32'] },
		close: { return: 'int32', arguments: ['int32'] },
	});
	const address = ffi.getRawPointer(Buffer.alloc(8));
	parentPort.postMessage('calling');
	for (let round = 0; ; round++) {
		// Each round creates a new function, so that V8 always has one to optimize.
		const calling = new Function(
			'read',
			'close',
			'address',
			`let sum = 0;
			for (let i = 0; i < 20_000; i++) {
				sum += read(-1, address, ${round} & 7) + Math.sqrt(i + ${round});
				if (i % 7 === 0) sum += close(-1);
			}
			return sum;`,
		);
		for (let again = 0; again < 6; again++) calling(functions.read, functions.close, address);
	}
}

for (let count = Number(process.argv[2]); count > 0; count--) {
	const thread = new Worker(new URL(import.meta.url));
	await new Promise(resolve => thread.once('message', resolve));
	await new Promise(resolve => setTimeout(resolve, Math.random() * 60));
	await endThread(thread);
}
console.log('all ended');
