/**
 * A load generator for HTTP/3: clients that each keep a fixed number of requests open, and idle connections. Prints READY once
 * all connections are open, then the counts, and exits when its standard input ends.
 *
 * Usage: node test/bench/http3-load.ts --port PORT [--path PATH] [--connections N] [--streams N] [--bytes N] [--idle N]
 *   [--handshakes] [--seconds N]
 */
import { parseArgs } from 'node:util';
import { frame, framesOf, headers, openControlStream } from '../runtime/protocols/http3/frames.ts';
import { type ClientStream, QuicClient } from '../runtime/protocols/http3/quic-client.ts';

const { values } = parseArgs({
	options: {
		port: { type: 'string', default: '443' },
		path: { type: 'string', default: '/' },
		connections: { type: 'string', default: '0' },
		streams: { type: 'string', default: '1' },
		bytes: { type: 'string', default: '1' },
		idle: { type: 'string', default: '0' },
		handshakes: { type: 'boolean', default: false },
		seconds: { type: 'string', default: '2' },
	},
});
const port = Number(values.port);
const bytes = Number(values.bytes);
/** The first bytes of the header section of a response with status 200: a static table entry (RFC 9204, Appendix A). */
const OK = Buffer.of(0, 0, 0xd9);
/** Number of idle connections opened at the same time. */
const IDLE_GROUP_SIZE = 20;
/** Milliseconds between two checks of the idle connections. */
const IDLE_CHECK_MS = 500;
const REQUEST = headers([
	[':method', 'GET'],
	[':scheme', 'https'],
	[':authority', `localhost:${port}`],
	[':path', values.path],
]);

/** ID of the server's control stream, and the type of the frame with which the server asks for another connection. */
const CONTROL_STREAM_ID = 3;
const GOAWAY_FRAME_TYPE = 7;

/** Milliseconds within which a connection must be open. */
const CONNECT_LIMIT_MS = 30_000;

const latenciesMs: number[] = [];
let failures = 0;
let end = Infinity;

/** A connection that keeps a number of requests open. */
class Client {
	quic: QuicClient = new QuicClient(port, { polls: false });
	readonly #open = new Map<ClientStream, number>();
	readonly #limit: number;
	#begunAt = performance.now();
	#asked = 0;
	/** Number of bytes received on the server's control stream, and whether they contain a GOAWAY frame. */
	#controlBytes = 0;
	#hasGoaway = false;

	constructor(limit: number) {
		this.#limit = limit;
	}

	/** Handles pending events, and sends further requests. Returns the number of open requests. */
	handleEvents(): number {
		const { quic } = this;
		quic.look();
		if (!quic.connected) {
			if (quic.closed !== undefined) this.#reconnect(1);
			return 1;
		}
		if (quic.closed !== undefined) {
			this.#reconnect(this.#open.size);
			return 1;
		}
		for (const [stream, at] of this.#open) {
			if (!stream.ended && stream.resetCode === undefined) continue;
			this.#open.delete(stream);
			const isOk = stream.ended && stream.received >= bytes && stream.bytes.indexOf(OK) > 0;
			if (isOk) latenciesMs.push(performance.now() - (values.handshakes ? this.#begunAt : at));
			else failures++;
			stream.stop();
			if (values.handshakes) {
				this.#reconnect(0);
				return 0;
			}
		}
		this.#checkForGoaway();
		if (this.#hasGoaway && this.#open.size === 0) {
			this.#reconnect(0);
			return 1;
		}
		const now = performance.now();
		while (!this.#hasGoaway && this.#open.size < this.#limit && now < end) {
			if (this.#asked++ === 0) quic.open(true).write(Buffer.concat([Buffer.of(0), frame(4)]));
			const stream = quic.open();
			stream.discards = true;
			this.#open.set(stream.write(REQUEST, true), now);
		}
		quic.look();
		return this.#open.size;
	}

	/** Checks whether the server has asked the client to open another connection. */
	#checkForGoaway(): void {
		const control = this.quic.stream(CONTROL_STREAM_ID);
		if (control === undefined || control.received === this.#controlBytes) return;
		this.#controlBytes = control.received;
		this.#hasGoaway = framesOf(control.bytes, 1).some(({ type }) => type === GOAWAY_FRAME_TYPE);
	}

	/** Opens another connection in place of this one. */
	#reconnect(failed: number): void {
		failures += failed;
		this.quic.close();
		this.#open.clear();
		this.#asked = 0;
		this.#controlBytes = 0;
		this.#hasGoaway = false;
		this.#begunAt = performance.now();
		this.quic = new QuicClient(port, { polls: false });
	}
}

const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve));

/** Throws if a connection was closed, or took too long to open. */
function checkConnection(quic: QuicClient, since: number): void {
	if (quic.closed !== undefined) throw new Error(`a connection was closed: ${JSON.stringify(quic.closed)}`);
	if (performance.now() - since > CONNECT_LIMIT_MS)
		throw new Error('a connection did not open, or not answer, in time');
}

/** Opens a connection, sends one request, and leaves it open. */
async function openIdle(): Promise<QuicClient> {
	const quic = new QuicClient(port, { polls: false });
	const since = performance.now();
	while (!quic.connected) {
		quic.look();
		checkConnection(quic, since);
		await turn();
	}
	openControlStream(quic);
	const stream = quic.open().write(REQUEST, true);
	while (!stream.ended) {
		quic.look();
		checkConnection(quic, since);
		await turn();
	}
	stream.stop();
	quic.look();
	return quic;
}

const idle: QuicClient[] = [];
while (idle.length < Number(values.idle))
	idle.push(...(await Promise.all(Array.from({ length: IDLE_GROUP_SIZE }, openIdle))));
setInterval(() => {
	for (const quic of idle) quic.look();
}, IDLE_CHECK_MS);

const clients = Array.from({ length: Number(values.connections) }, () => new Client(Number(values.streams)));
if (!values.handshakes) {
	const since = performance.now();
	while (!clients.every(({ quic }) => quic.connected)) {
		for (const { quic } of clients) {
			quic.look();
			checkConnection(quic, since);
		}
		await turn();
	}
}
console.log('READY');
const startedAt = performance.now();
end = startedAt + Number(values.seconds) * 1000;
while (performance.now() < end) {
	for (const client of clients) client.handleEvents();
	await turn();
}
const microseconds = Math.round((performance.now() - startedAt) * 1000);
latenciesMs.sort((a, b) => a - b);
const at = (share: number): number => Math.round((latenciesMs[Math.floor(latenciesMs.length * share)] ?? 0) * 1000);
console.log(`COUNTED ${latenciesMs.length} ${microseconds} ${failures} ${at(0.5)} ${at(0.99)} ${at(0.999)}`);

process.stdin.resume().on('end', () => {
	for (const quic of [...idle, ...clients.map(client => client.quic)]) quic.close();
	process.exit();
});
