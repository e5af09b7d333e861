/** The cache when a thread dies, when a client leaves during its fetch, and when a fetch takes too long. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Runtime, startRuntime } from '../../../runtime/main/runtime.ts';
import { freePorts, pauseFor, until } from '../../harness.ts';
import { recordingLog } from '../running-server.ts';

const dying = suite('caches with dying threads and leaving clients');
const requestCounts = new Map<string, number>();
const heldResponses: ServerResponse[] = [];
/** Number of requests for `/private-slow`. The first response is private; the others are held until all requests have arrived. */
const PRIVATE_COUNT = 30;
const privateResponses: ServerResponse[] = [];
const origin = createServer((request, response) => {
	const path = request.url!;
	const count = (requestCounts.get(path) ?? 0) + 1;
	requestCounts.set(path, count);
	if (!path.startsWith('/fails')) {
		response.setHeader('Cache-Control', path.includes('private') ? 'private' : 'max-age=600');
	}
	if (path.startsWith('/held') && count === 1) heldResponses.push(response);
	else if (path === '/private-slow' && count > 1) {
		privateResponses.push(response);
		if (count === PRIVATE_COUNT) privateResponses.forEach((held, i) => void held.end(`${path} ${i + 2}`));
	} else if (path.startsWith('/fails')) setTimeout(() => response.writeHead(503).end(), 100);
	else setTimeout(() => response.end(`${path} ${count}`), path.includes('slow') ? 200 : 0);
});
const log = recordingLog();
let runtime: Runtime;
let port = 0;

dying.before(async () => {
	origin.listen(0, '127.0.0.1');
	await once(origin, 'listening');
	const upstream = (origin.address() as { port: number }).port;
	[port] = (await freePorts(1)) as [number];
	const text = `http://127.0.0.1:${port} {
	handle /held-long {
		cache {
			collapse 400ms
		}
		reverse_proxy 127.0.0.1:${upstream}
	}
	# The other requests wait as long as a busy machine may take.
	cache {
		collapse 1m
	}
	reverse_proxy 127.0.0.1:${upstream}
}
`;
	runtime = await startRuntime({
		input: { format: 'configfile', text, name: 'Configfile' },
		threads: 2,
		writers: { stderr: log, stdout: log },
	});
});

dying.after(async () => {
	for (const response of [...heldResponses, ...privateResponses]) response.destroy();
	await runtime?.stop();
	origin.closeAllConnections();
	origin.close();
});

/** Sends one request on its own connection and resolves to the response. */
async function get(path: string): Promise<string> {
	const socket = connect(port, '127.0.0.1');
	socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`);
	let text = '';
	socket.setEncoding('latin1').on('data', chunk => {
		text += chunk;
	});
	socket.on('error', () => {});
	await once(socket, 'close');
	return text;
}

dying('stored responses survive the death of a thread, and its replacement finds them', async () => {
	assert.match(await get('/kept'), 'stored');
	await runtime.terminateWorker(0);
	await until('the replacement thread serves', () => log.text().includes('a worker thread was replaced'));
	for (let i = 0; i < 20; i++) assert.match(await get('/kept'), 'svc; hit');
	assert.is(requestCounts.get('/kept'), 1);
});

dying('if the fetching client disconnects, another request fetches', async () => {
	const leaver = connect(port, '127.0.0.1');
	leaver.on('error', () => {});
	leaver.write(`GET /held HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
	await until('the origin received the request', () => heldResponses.length > 0);
	const waiting = Promise.all(Array.from({ length: 20 }, () => get('/held')));
	await pauseFor(100);
	leaver.destroy();
	for (const answer of await waiting) assert.match(answer, '/held 2');
	assert.is(requestCounts.get('/held'), 2);
});

dying('after the maximum wait, a waiting request fetches itself', async () => {
	const first = get('/held-long');
	await until('the origin received the request', () => requestCounts.get('/held-long') === 1);
	const startedAt = performance.now();
	assert.match(await get('/held-long'), '/held-long 2');
	const elapsedMs = performance.now() - startedAt;
	assert.ok(elapsedMs > 200 && elapsedMs < 5000, String(elapsedMs));
	heldResponses.at(-1)!.end('late');
	assert.match(await first, 'late');
});

dying('private responses are fetched by each client, concurrently after the first', async () => {
	// If the requests were serialized, the second one would wait for ever.
	const answers = await Promise.all(Array.from({ length: PRIVATE_COUNT }, () => get('/private-slow')));
	assert.is(new Set(answers.map(answer => answer.slice(answer.indexOf('\r\n\r\n')))).size, PRIVATE_COUNT);
	assert.is(requestCounts.get('/private-slow'), PRIVATE_COUNT);
});

dying('a failure is not shared with waiting requests', async () => {
	const answers = await Promise.all(Array.from({ length: 5 }, () => get('/fails')));
	for (const answer of answers) assert.match(answer, '503');
	assert.is(requestCounts.get('/fails'), 5);
});

dying.run();
