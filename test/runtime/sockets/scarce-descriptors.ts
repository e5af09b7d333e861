/** A program for a test. It listens, and uses up all descriptors of the process until it is told to free them. */
import { closeSync, openSync } from 'node:fs';
import { DirectListeningSocket } from '../../../runtime/sockets/direct-listening-socket.ts';
import type { DirectSocket } from '../../../runtime/sockets/direct-socket.ts';
import { threadPoller } from '../../../runtime/sockets/socket-poller.ts';
import { until } from '../../harness.ts';

threadPoller();
await until('the poller works', () => threadPoller() !== undefined);
const memory = Buffer.allocUnsafeSlow(4096);
const listening = new DirectListeningSocket({
	needsStream: false,
	onAccepted(socket) {
		const ignore = (): void => {};
		(socket as DirectSocket).start(memory, {
			onReceived: () => {
				socket.write('served', 'latin1');
				socket.destroy();
			},
			...{ onPeerEnded: () => socket.destroy(), onDrained: ignore, onClosed: ignore },
		});
	},
	onAcceptFailed: error => process.send!({ failed: error.code }),
});
await listening.listen({ port: 0, host: '127.0.0.1', reusePort: false });
await until('connections are accepted without Node', () => listening.acceptsItself);
const held: number[] = [];
process.on('message', (word: 'use up' | 'free' | 'end') => {
	if (word === 'end') process.exit();
	if (word === 'free') for (const descriptor of held.splice(0)) closeSync(descriptor);
	else {
		try {
			for (;;) held.push(openSync('/dev/null', 'r'));
		} catch {
			// No descriptor is left.
		}
	}
	process.send!({ done: word });
});
process.send!({ port: listening.address!.port });
