/** GOAWAY on HTTP/2 over TLS: after a reload with and without HTTP/2, and when the server stops. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type ClientHttp2Session, connect } from 'node:http2';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Document, Site } from '../../../compiler/document/document.ts';
import { type Runtime, startRuntime } from '../../../runtime/main/runtime.ts';
import { TestAuthority } from '../../certificates.ts';
import { freePorts, temporaryFolder } from '../../harness.ts';
import { eventually, jsonInput, recordingLog } from '../running-server.ts';

const goaway = suite('GOAWAY over TLS');

const folder = temporaryFolder();
const files = { certificate: path.join(folder, 'a.pem'), key: path.join(folder, 'a.key') };
const [keeps, loses] = (await freePorts(2)) as [number, number];
/** Responses that the upstream is holding back. */
const heldResponses: ServerResponse[] = [];
let upstream: Server;
let server: Runtime;

function site(port: number, body: string): Site {
	const dial = `127.0.0.1:${(upstream.address() as { port: number }).port}`;
	return {
		addresses: [`https://a.test:${port}`],
		bind: ['127.0.0.1'],
		tls: { certificates: [files] },
		pipeline: [
			{ handler: 'respond', when: { type: 'path', patterns: ['/now'] }, body },
			{ handler: 'proxy', upstreams: { to: [dial] } },
		],
	};
}

/** Returns a document with two listeners. `protocols` are those of the second listener. */
function document(body: string, protocols: string[]): Document {
	const servers = [{ listener: `127.0.0.1:${loses}`, protocols }];
	return { settings: { auto_https: ['off'], servers }, sites: [site(keeps, body), site(loses, body)] };
}

/** A client's connection, and the code and last stream of each GOAWAY frame that it has received. */
interface Client {
	readonly session: ClientHttp2Session;
	readonly goAways: [code: number, last: number][];
}

async function client(port: number): Promise<Client> {
	const session = connect(`https://127.0.0.1:${port}`, { servername: 'a.test', rejectUnauthorized: false });
	const said: [number, number][] = [];
	session.on('goaway', (code, last) => void said.push([code, last]));
	session.on('error', () => {});
	await once(session, 'connect');
	return { session, goAways: said };
}

async function get({ session }: Client, target: string): Promise<{ status: number; body: string }> {
	const stream = session.request({ ':path': target, ':authority': 'a.test' });
	let status = 0;
	stream.on('response', headers => {
		status = headers[':status']!;
	});
	let body = '';
	for await (const chunk of stream.setEncoding('utf8')) body += chunk;
	return { status, body };
}

async function release(): Promise<void> {
	await eventually('a held-back response', () => heldResponses.length > 0);
	heldResponses.pop()!.end('late');
}

goaway.before(async () => {
	const { certificate, key } = await (await TestAuthority.make()).issue({ names: ['a.test'] });
	writeFileSync(files.certificate, certificate);
	writeFileSync(files.key, key, { mode: 0o600 });
	upstream = createServer((_request, response) => void heldResponses.push(response)).listen(0, '127.0.0.1');
	await once(upstream, 'listening');
	const log = recordingLog();
	server = await startRuntime({
		input: jsonInput(document('first', ['h1', 'h2'])),
		threads: 2,
		writers: { stdout: log, stderr: log },
	});
});

goaway.after(async () => {
	server?.kill();
	upstream.close();
	upstream.closeAllConnections();
});

goaway(
	'a reload that removes HTTP/2 from a listener lets open streams complete and then closes the connection',
	async () => {
		const leaving = await client(loses);
		const staying = await client(keeps);
		assert.is((await get(leaving, '/now')).body, 'first');
		const slow = get(leaving, '/slow');
		const other = get(staying, '/slow');
		await eventually('both requests wait', () => heldResponses.length === 2);
		const outcome = await server.load(jsonInput(document('second', ['h1'])));
		assert.is(outcome.result, 'applied', JSON.stringify(outcome));
		await eventually('GOAWAY', () => leaving.goAways.length > 0);
		assert.is(leaving.goAways[0]![0], 0);
		const whenClosed = once(leaving.session, 'close');
		heldResponses.splice(0).forEach(response => void response.end('late'));
		assert.equal(await slow, { status: 200, body: 'late' });
		await whenClosed;
		// The listener whose protocols have not changed sends no GOAWAY, and its connections are served by the new configuration.
		assert.equal(await other, { status: 200, body: 'late' });
		assert.equal(await get(staying, '/now'), { status: 200, body: 'second' });
		assert.equal(staying.goAways, []);
		staying.session.destroy();
	},
);

goaway('on a stop, clients get GOAWAY, open requests are answered, and then the server exits', async () => {
	const one = await client(keeps);
	const slow = get(one, '/slow');
	await eventually('the request waits', () => heldResponses.length === 1);
	const stopped = server.stop();
	await eventually('GOAWAY', () => one.goAways.length > 0);
	assert.is(one.goAways[0]![0], 0);
	await release();
	assert.equal(await slow, { status: 200, body: 'late' });
	await stopped;
});

goaway.run();
