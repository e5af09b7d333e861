/**
 * DNS providers with fakes of their APIs: the requests that they send, how they handle refusals, and that errors never contain a
 * credential.
 */
import { createHmac } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import path from 'node:path';
import { decode, type Packet } from 'dns-packet';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ChallengeRecord } from '../../../../runtime/certificates/dns/dns-provider.ts';
import { createDnsProvider } from '../../../../runtime/certificates/dns/dns-providers.ts';
import { IssueError } from '../../../../runtime/certificates/issuer.ts';
import { temporaryFolder, until } from '../../../harness.ts';
import { type FakeApi, fakeApi } from './fake-api.ts';

const dns = suite('dns providers');
const signal = new AbortController().signal;
const dnsContext = { workingDirectory: temporaryFolder(), environment: { ...process.env, AWS_ACCESS_KEY_ID: 'AKID' } };
const SECRET = 'very-secret-token';
const record: ChallengeRecord = {
	zone: 'example.com',
	name: '_acme-challenge.www.example.com',
	value: 'digest_of-the-authorization',
	ttl: 120,
};

/** Resolves to the error with which the promise rejects. */
async function refusal(work: Promise<unknown>): Promise<IssueError> {
	const error = await work.then(
		() => assert.unreachable(),
		caught => caught,
	);
	assert.instance(error, IssueError);
	assert.not.ok(error.message.includes(SECRET), error.message);
	return error;
}

dns('cloudflare: finds the zone, creates the record and deletes only that one', async () => {
	const api: FakeApi = await fakeApi(({ method, path: url }) => {
		if (url === '/zones?name=example.com') return { body: { result: [{ id: 'z1' }] } };
		if (method === 'POST' && url === '/zones/z1/dns_records') return { body: { result: { id: 'r1' } } };
		if (method === 'DELETE' && url === '/zones/z1/dns_records/r1') return { body: { result: { id: 'r1' } } };
		return { status: 404, body: { errors: [{ message: 'no such thing' }] } };
	});
	const provider = await createDnsProvider(
		{ provider: 'cloudflare', api_token: SECRET, endpoint: api.url },
		dnsContext,
	);
	const remove = await provider.add(record, signal);
	assert.equal(JSON.parse(api.calls[1]!.body), {
		type: 'TXT',
		name: record.name,
		content: `"${record.value}"`,
		ttl: 120,
	});
	assert.is(api.calls[1]!.headers.authorization, `Bearer ${SECRET}`);
	await remove();
	assert.is(api.calls.length, 3);
	const error = await refusal(provider.add({ ...record, zone: 'other.com' }, signal));
	assert.match(error.message, /answered with status 404 to GET \/zones: no such thing/);
	await api.close();
	assert.match((await refusal(provider.add(record, signal))).message, /cannot be reached/);
});

dns('digitalocean: creates the record in its zone and deletes it by its id', async () => {
	const api = await fakeApi(({ method }) =>
		method === 'POST' ? { status: 201, body: { domain_record: { id: 77 } } } : { status: 204 },
	);
	const provider = await createDnsProvider(
		{ provider: 'digitalocean', auth_token: SECRET, endpoint: api.url },
		dnsContext,
	);
	await (await provider.add(record, signal))();
	assert.equal(
		api.calls.map(({ method, path: url }) => `${method} ${url}`),
		['POST /v2/domains/example.com/records', 'DELETE /v2/domains/example.com/records/77'],
	);
	assert.is(JSON.parse(api.calls[0]!.body).name, '_acme-challenge.www');
	await api.close();
});

dns('hetzner: adds a value to the record set and removes only that value', async () => {
	const api = await fakeApi(() => ({ status: 201, body: { action: {} } }));
	const provider = await createDnsProvider({ provider: 'hetzner', api_token: SECRET, endpoint: api.url }, dnsContext);
	await (await provider.add(record, signal))();
	const set = '/zones/example.com/rrsets/_acme-challenge.www/TXT/actions';
	assert.equal(
		api.calls.map(({ path: url }) => url),
		[`${set}/add_records`, `${set}/remove_records`],
	);
	assert.equal(JSON.parse(api.calls[0]!.body).records, [{ value: `"${record.value}"` }]);
	await api.close();
});

dns('route53: signs requests, keeps existing values, and deletes the record set when it becomes empty', async () => {
	let values = ['"other"'];
	const api = await fakeApi(({ method, path: url, body }) => {
		if (url.startsWith('/2013-04-01/hostedzonesbyname')) {
			const zone = (id: string, isPrivate: boolean): string =>
				`<HostedZone><Id>/hostedzone/${id}</Id><Name>example.com.</Name><Config><PrivateZone>${isPrivate}</PrivateZone></Config></HostedZone>`;
			return { body: `<R>${zone('ZPRIVATE', true)}${zone('ZPUBLIC', false)}</R>` };
		}
		if (method === 'GET') {
			const list = values.map(value => `<ResourceRecord><Value>${value}</Value></ResourceRecord>`).join('');
			const set = `<ResourceRecordSet><Name>${record.name}.</Name><Type>TXT</Type>${list}</ResourceRecordSet>`;
			return { body: values.length > 0 ? set : '<none/>' };
		}
		const sent = [...body.matchAll(/<Value>&quot;(.*?)&quot;<\/Value>/g)].map(([, value]) => `"${value}"`);
		values = body.includes('<Action>DELETE</Action>') ? [] : sent;
		return { body: '<ok/>' };
	});
	const settings = { provider: 'route53', secret_access_key: SECRET, endpoint: api.url };
	const provider = await createDnsProvider(settings, dnsContext);
	const remove = await provider.add(record, signal);
	assert.equal(values, ['"other"', `"${record.value}"`]);
	assert.match(
		String(api.calls[0]!.headers.authorization),
		/^AWS4-HMAC-SHA256 Credential=AKID\/\d{8}\/us-east-1\/route53/,
	);
	assert.not.ok(JSON.stringify(api.calls).includes(SECRET));
	assert.ok(api.calls.some(({ path: url }) => url === '/2013-04-01/hostedzone/ZPUBLIC/rrset/'));
	await remove();
	assert.equal(values, ['"other"']);
	values = [];
	await (await provider.add(record, signal))();
	assert.equal(values, []);
	await api.close();
});

dns('exec: runs the program without a shell, and reports how it failed', async () => {
	const folder = temporaryFolder();
	const program = path.join(folder, 'set.mjs');
	writeFileSync(
		program,
		`import { appendFileSync } from 'node:fs';
const [log, ...args] = process.argv.slice(2);
appendFileSync(log, JSON.stringify([...args, process.env.SVC_DNS_ZONE, process.env.SVC_DNS_TTL]) + '\\n');
if (args[1].includes('fails')) { console.error('the zone is\\nlocked'); process.exit(3); }
`,
	);
	const log = path.join(folder, 'log');
	const provider = await createDnsProvider(
		{ provider: 'exec', command: [process.execPath, program, log] },
		{ ...dnsContext, workingDirectory: folder },
	);
	await (await provider.add({ ...record, value: '$(id) `x`' }, signal))();
	const { readFileSync } = await import('node:fs');
	const lines = readFileSync(log, 'utf8').trim().split('\n');
	assert.equal(JSON.parse(lines[0]!), ['present', `${record.name}.`, '$(id) `x`', 'example.com', '120']);
	assert.is(JSON.parse(lines[1]!)[0], 'cleanup');
	const failing = await refusal(provider.add({ ...record, name: 'fails.example.com' }, signal));
	assert.match(failing.message, /exited with status 3: the zone is locked\.$/);
	const missing = await createDnsProvider({ provider: 'exec', command: ['/no/such/program'] }, dnsContext);
	assert.match((await refusal(missing.add(record, signal))).message, /cannot be run: ENOENT/);
});

dns('exec: a hanging program and its child processes end with the order', async () => {
	const folder = temporaryFolder();
	const pidFile = path.join(folder, 'pid');
	const script = `case "$0" in present) [ -e ${pidFile} ] && exit 0;; esac; sleep 60 & echo $! > ${pidFile}; wait`;
	const provider = await createDnsProvider({ provider: 'exec', command: ['sh', '-c', script] }, dnsContext);
	const { existsSync, readFileSync } = await import('node:fs');
	const ends = new AbortController();
	const startedAt = performance.now();
	const adding = refusal(provider.add(record, ends.signal));
	await until('the program runs', () => existsSync(pidFile) && readFileSync(pidFile, 'utf8') !== '');
	const pid = Number(readFileSync(pidFile, 'utf8'));
	ends.abort();
	assert.match((await adding).message, /was ended/);
	assert.ok(performance.now() - startedAt < 5000);
	const lives = (): boolean => {
		try {
			return readFileSync(`/proc/${pid}/stat`, 'latin1').split(' ')[2] !== 'Z';
		} catch {
			return false;
		}
	};
	await until('the child process ends', () => !lives());
	// The order is aborted and the cleanup hangs, so the provider waits for a shorter time than usual.
	const later = new AbortController();
	const remove = await provider.add(record, later.signal);
	const removing = refusal(remove());
	const from = performance.now();
	later.abort();
	await removing;
	assert.ok(performance.now() - from < 8000);
});

/** Starts a name server that accepts one update and answers it. */
async function startNameServer(answer: (request: Buffer) => Buffer): Promise<{ server: Server; port: number }> {
	const server = createServer(socket => {
		let received: Buffer = Buffer.alloc(0);
		socket.on('error', () => {});
		socket.on('data', (chunk: Buffer) => {
			received = Buffer.concat([received, chunk]);
			if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return;
			const response = answer(received.subarray(2));
			const length = Buffer.alloc(2);
			length.writeUInt16BE(response.length);
			socket.end(Buffer.concat([length, response]));
		});
	});
	await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
	return { server, port: (server.address() as { port: number }).port };
}

/**
 * Splits a request into the message and its signature. The length of the signature follows from the name, the algorithm and the
 * digest size that this test uses.
 */
function splitSigned(request: Buffer, name: string, algorithm: string, size: number) {
	const fixed = name.length + 2 + 10 + algorithm.length + 2 + 10 + size + 6;
	const start = request.length - fixed;
	const mac = request.subarray(start + name.length + 2 + 10 + algorithm.length + 2 + 10).subarray(0, size);
	const time = request.subarray(start + name.length + 2 + 10 + algorithm.length + 2).subarray(0, 6);
	const message = Buffer.from(request.subarray(0, start));
	message.writeUInt16BE(message.readUInt16BE(10) - 1, 10);
	return { message, mac, time };
}

const wire = (name: string): Buffer =>
	Buffer.concat([
		...name.split('.').map(label => Buffer.from(`${String.fromCharCode(label.length)}${label}`)),
		Buffer.of(0),
	]);

/** Signs a response as a name server does (RFC 8945 §5.3). */
function signedResponse(
	request: Buffer,
	key: Buffer,
	rcode: number,
): { response: Buffer; mac: Buffer; expected: Buffer } {
	const { message, mac, time } = splitSigned(request, 'key', 'hmac-sha256', 32);
	const variables = (fudge: number): Buffer =>
		Buffer.concat([
			wire('key'),
			Buffer.from('00ff00000000', 'hex'),
			wire('hmac-sha256'),
			time,
			Buffer.of(fudge >> 8, fudge & 255),
			Buffer.alloc(4),
		]);
	const expected = createHmac('sha256', key).update(message).update(variables(300)).digest();
	const header = Buffer.alloc(12);
	message.copy(header, 0, 0, 2);
	header.writeUInt16BE(0xa800 | rcode, 2);
	const own = createHmac('sha256', key)
		.update(Buffer.of(0, mac.length))
		.update(mac)
		.update(header)
		.update(variables(300))
		.digest();
	const data = Buffer.concat([
		wire('hmac-sha256'),
		time,
		Buffer.of(1, 44, 0, 32),
		own,
		message.subarray(0, 2),
		Buffer.alloc(4),
	]);
	const size = Buffer.alloc(2);
	size.writeUInt16BE(data.length);
	const response = Buffer.concat([header, wire('key'), Buffer.from('00fa00ff00000000', 'hex'), size, data]);
	response.writeUInt16BE(1, 10);
	return { response, mac, expected };
}

dns(
	'rfc2136: sends signed updates that add and remove exactly the record, and requires a signed response',
	async () => {
		const key = Buffer.from('a key of thirty-two bytes, really');
		const updates: Packet[] = [];
		const signatures: boolean[] = [];
		let rcode = 0;
		const { server, port } = await startNameServer(request => {
			const { response, mac, expected } = signedResponse(request, key, rcode);
			signatures.push(mac.equals(expected));
			updates.push(decode(Buffer.from(splitSigned(request, 'key', 'hmac-sha256', 32).message)));
			return response;
		});
		const settings = { provider: 'rfc2136', server: `127.0.0.1:${port}`, key_name: 'key', key: key.toString('base64') };
		const provider = await createDnsProvider(settings, dnsContext);
		const remove = await provider.add(record, signal);
		await remove();
		assert.equal(signatures, [true, true]);
		const [added, removed] = updates.map(
			update => update.authorities![0] as { name: string; type: string; ttl: number; data: unknown },
		);
		assert.is(added!.name, record.name);
		assert.is(added!.type, 'TXT');
		assert.is(added!.ttl, 120);
		assert.is(String(added!.data), record.value);
		assert.is(removed!.ttl, 0);
		assert.is(updates[0]!.questions![0]!.name, 'example.com');
		assert.is(updates[0]!.questions![0]!.type, 'SOA');
		rcode = 5;
		assert.match((await refusal(provider.add(record, signal))).message, /refused the update: REFUSED/);
		const stranger = await createDnsProvider(
			{ ...settings, key: Buffer.from('another').toString('base64') },
			dnsContext,
		);
		assert.match(
			(await refusal(stranger.add(record, signal))).message,
			/signature of the name server's response is wrong/,
		);
		server.close();
		const unsigned = await startNameServer(request => {
			const header = Buffer.from(request.subarray(0, 12));
			header.writeUInt16BE(0xa800, 2);
			header.fill(0, 4);
			return header;
		});
		const other = await createDnsProvider({ ...settings, server: `127.0.0.1:${unsigned.port}` }, dnsContext);
		assert.match((await refusal(other.add(record, signal))).message, /did not sign its response/);
		unsigned.server.close();
	},
);

dns('an unknown provider, a key without a name and an invalid server address are refused', async () => {
	await refusal(createDnsProvider({ provider: 'nobody' }, dnsContext));
	await refusal(createDnsProvider({ provider: 'rfc2136', server: '127.0.0.1', key: 'AAAA' }, dnsContext));
	await refusal(createDnsProvider({ provider: 'rfc2136', server: 'a:b:c' }, dnsContext));
});

dns.run();
