/**
 * A process that relays connections to a server, and delays the bytes in both directions.
 *
 * Usage: node relay.ts <port> <address of the server> <port of the server>. A message from the parent process sets the delay in
 * milliseconds.
 */
import { connect, createServer, type Socket } from 'node:net';

const [port, host, serverPort] = process.argv.slice(2) as [string, string, string];
let delayMs = 0;

function deliver(from: Socket, to: Socket): void {
	// Bytes must not overtake earlier bytes when the delay becomes shorter.
	let lastDelivery: Promise<unknown> = Promise.resolve();
	const schedule = (action: () => void): void => {
		const delay = delayMs === 0 ? undefined : new Promise(resolve => setTimeout(resolve, delayMs));
		lastDelivery = Promise.all([lastDelivery, delay]).then(action);
	};
	from.on('data', data =>
		schedule(() => {
			if (!to.destroyed) to.write(data);
		}),
	);
	from.on('error', () => {});
	from.on('close', () => schedule(() => to.destroy()));
}

const server = createServer(client => {
	const upstream = connect(Number(serverPort), host);
	deliver(client, upstream);
	deliver(upstream, client);
});
server.listen(Number(port), '0.0.0.0', () => process.send!('listening'));
process.on('message', message => {
	delayMs = Number(message);
});
process.on('disconnect', () => process.exit());
