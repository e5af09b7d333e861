/**
 * Measures the processor time per request of our own code (engine, site table and handler), over connections in memory. The
 * difference to the bench is the cost of the system and Node. There are three kinds of request heads: equal ones, ones with
 * different paths, and ones that also carry the fields of a browser.
 *
 * Usage: node test/bench/engine-alone.ts [requests a round]
 */
import { buildSite } from '../../compiler/codegen/build-site.ts';
import { UNKNOWN_HOST_FACTS } from '../../compiler/codegen/placeholders/index.ts';
import { SiteTable } from '../../compiler/codegen/site-table.ts';
import { ROW_LENGTH } from '../../runtime/metrics/counter-row.ts';
import { createHttp1Server } from '../../runtime/protocols/http1/http1-server.ts';
import { DEFAULT_LIMITS } from '../../runtime/protocols/http1/limits.ts';
import { DirectSocket, type StreamHandle } from '../../runtime/sockets/direct-socket.ts';
import { CONTROL_GENERATION, CONTROL_SLOTS } from '../../runtime/threads/control-words.ts';
import { LeaseRegistry } from '../../runtime/threads/lease-registry.ts';
import { ThreadActivity } from '../../runtime/threads/thread-activity.ts';
import { ThreadTls } from '../../runtime/tls/thread-tls.ts';
import { Generation, Generations } from '../../runtime/worker/generation.ts';
import { RequestHost } from '../../runtime/worker/request-host.ts';
import { NO_LEASES } from '../compiler/fake-exchange.ts';
import { median } from './measure.ts';

const CONNECTION_COUNT = 64;
const HEAD_COUNT = 4096;
const ROUND_COUNT = 7;

const BROWSER = [
	'User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0',
	'Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
	'Accept-Language: en-US,en;q=0.5',
	'Accept-Encoding: gzip, deflate, br, zstd',
	'',
].join('\r\n');

/** A connection that accepts every write at once. */
class MemoryHandle {
	onread: StreamHandle['onread'] = () => undefined;
	readonly writeQueueSize = 0;
	memory: Uint8Array = new Uint8Array(0);
	written = 0;

	useUserBuffer(memory: Uint8Array): void {
		this.memory = memory;
	}

	readStart(): number {
		return 0;
	}

	readStop(): number {
		return 0;
	}

	writeLatin1String(_request: null, text: string): number {
		this.written += text.length;
		return 0;
	}

	writeBuffer(): number {
		return 0;
	}

	writev(): number {
		return 0;
	}

	shutdown(): number {
		return 0;
	}

	close(): void {}

	getpeername(name: { address?: string; port?: number }): number {
		name.address = '192.0.2.1';
		name.port = 1;
		return 0;
	}
}

/** Creates a listener with one site that answers with 14 bytes, and connections to it. */
function connections(): { readonly handle: MemoryHandle; readonly socket: DirectSocket }[] {
	const control = new Int32Array(new SharedArrayBuffer(CONTROL_SLOTS * Int32Array.BYTES_PER_ELEMENT));
	const generations = new Generations(control, new LeaseRegistry());
	const built = buildSite(
		{ addresses: ['http://127.0.0.1:8080'], pipeline: [{ handler: 'respond', body: 'Hello, world!\n' }] },
		0,
		{ settings: {}, upstreams: {}, routes: {}, leases: NO_LEASES, facts: UNKNOWN_HOST_FACTS },
	);
	const table = new SiteTable([{ site: 0, hosts: ['127.0.0.1'], paths: [] }]);
	generations.prepare(
		new Generation(1, [{ built, leases: [] }], new Map([['here', { table, servedHosts: undefined }]]), []),
	);
	control[CONTROL_GENERATION] = 1;
	const host = new RequestHost('here', {
		generations,
		activity: new ThreadActivity(),
		counters: new Float64Array(new SharedArrayBuffer(ROW_LENGTH * Float64Array.BYTES_PER_ELEMENT)),
		limits: DEFAULT_LIMITS,
		tls: new ThreadTls(() => {}),
		clientIp: x => x.connection.remoteAddress,
		isDraining: false,
		logsDebug: false,
		log() {},
		onConnectionEnded() {},
	});
	const server = createHttp1Server(host);
	return Array.from({ length: CONNECTION_COUNT }, () => {
		const handle = new MemoryHandle();
		const socket = new DirectSocket(handle as unknown as StreamHandle);
		server.accept(socket, 'http', undefined);
		return { handle, socket };
	});
}

const count = Number(process.argv[2] ?? 200_000);
const open = connections();
const shapes: { readonly [name: string]: (index: number) => string } = {
	'repeated heads': () => 'GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n',
	'different heads': index => `GET /page/${index * 7919} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n`,
	'different heads with the fields of a browser': index =>
		`GET /page/${index * 7919} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n${BROWSER}\r\n`,
};
for (const [name, text] of Object.entries(shapes)) {
	const heads = Array.from({ length: HEAD_COUNT }, (_, index) => Buffer.from(text(index), 'latin1'));
	const run = (): number => {
		const before = process.cpuUsage();
		for (let i = 0; i < count; i++) {
			const { handle, socket } = open[i % CONNECTION_COUNT]!;
			const head = heads[(i * 31) % HEAD_COUNT]!;
			handle.memory.set(head);
			socket.handleRead(head.length);
		}
		const { user, system } = process.cpuUsage(before);
		return ((user + system) * 1000) / count;
	};
	// Warms up, so that V8 compiles the code before the measurement.
	run();
	run();
	const rounds = Array.from({ length: ROUND_COUNT }, run);
	console.log(`${name}: ${Math.round(median(rounds))} ns per request (${Math.round(Math.min(...rounds))} at least)`);
}
if (open.some(({ handle }) => handle.written === 0)) throw new Error('a connection got no response');
process.exit();
