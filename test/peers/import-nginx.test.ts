/**
 * nginx with its own configuration, and svc with the configuration that `svc import` makes of it, give the same answers to the
 * same requests.
 *
 * A case is a folder. The folders in `fixtures/import-nginx` are about single directives, and those in
 * `fixtures/import-nginx-sites` are whole configurations. `http.conf` is the content of the `http` block, in which PORT,
 * UPSTREAM, SITE and the other words of `WORDS` stand for values that are known only at run time. `requests` lists requests, each
 * as `[METHOD ]target[ [https://][user:password@]host][ Field:value]…[ from=ADDRESS]` with the value percent-encoded; the request
 * is sent from the address, which is one of this machine. Random requests are added to these, unless the first line is
 * `# only these`. `kept` lists the directives that become comments. `differences` lists accepted differences as
 * `PATTERN | JUDGEMENT`, where the pattern is a regular expression for requests. All cases are joined to one configuration, so no
 * two may use the same name for a map, zone or upstream.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent, createServer, request, type Server } from 'node:http';
import { Agent as SecureAgent, request as secureRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { importNginx } from '../../compiler/import/nginx/import-nginx.ts';
import { diskReader } from '../../runtime/compile/disk-reader.ts';
import { TestAuthority } from '../certificates.ts';
import { SeededChance } from '../fuzz/chance.ts';
import { freePorts, ROOT, runCommand, type ServerProcess, serve, temporaryFolder, waitForPort } from '../harness.ts';

const FOLDERS = { features: 'fixtures/import-nginx', sites: 'fixtures/import-nginx-sites' } as const;
/** Number of random requests for each case. */
const RANDOM_REQUESTS = 40;

interface Difference {
	readonly pattern: RegExp;
	readonly judgement: string;
	used: boolean;
}

interface ImportCase {
	readonly name: string;
	readonly isSite: boolean;
	readonly http: string;
	readonly requests: readonly string[];
	readonly kept: readonly string[];
	readonly differences: readonly Difference[];
}

interface Answer {
	readonly status: number;
	readonly location: string | undefined;
	readonly body: string;
	readonly fields: { readonly [name: string]: string };
}

/**
 * Differences that are accepted in all cases, and the reasons. `accepts` returns nginx's answer if the difference is accepted,
 * and otherwise our answer unchanged.
 */
const GENERAL_DIFFERENCES: readonly {
	readonly judgement: string;
	readonly accepts: (ours: Answer, theirs: Answer) => Answer;
}[] = [
	{
		judgement: 'a folder without its slash is redirected with 308, which keeps the method, not with 301',
		accepts: (ours, theirs) =>
			ours.status === 308 && theirs.status === 301 && cleanLocation(ours.location) === theirs.location ? theirs : ours,
	},
	{
		judgement: 'a path that continues below a file is refused with 400, not with 404',
		accepts: (ours, theirs) => (ours.status === 400 && theirs.status === 404 ? theirs : ours),
	},
	{
		judgement: 'a file with a slash after it is redirected to the file, where nginx has 404',
		accepts: (ours, theirs) =>
			ours.status === 308 && theirs.status === 404 && /[^/]$/.test(ours.location ?? '/') ? theirs : ours,
	},
	{
		judgement: 'a folder without an index is a 404, where nginx has 403',
		accepts: (ours, theirs) => (ours.status === 404 && theirs.status === 403 ? theirs : ours),
	},
];

/**
 * Returns the value of a Location field as nginx sends it when it redirects to a folder: the path is decoded, and dot segments
 * are removed.
 */
function cleanLocation(location: string | undefined): string | undefined {
	if (location === undefined) return undefined;
	const { pathname, search } = new URL(location.replace(/\/{2,}/g, '/'), 'http://localhost');
	return decodeURIComponent(pathname) + search;
}

/** Fields of answers that are compared. */
const COMPARED_FIELDS = [
	...['cache-control', 'x-static', 'x-a', 'x-b', 'x-frame-options', 'x-served', 'content-encoding', 'www-authenticate'],
	...['access-control-allow-origin', 'access-control-allow-methods', 'strict-transport-security', 'x-cache-status'],
];

function casesIn(folder: string, isSite: boolean): ImportCase[] {
	return readdirSync(folder)
		.sort()
		.map(name => {
			const lines = (file: string): string[] => {
				const at = path.join(folder, name, file);
				return existsSync(at)
					? readFileSync(at, 'utf8')
							.split('\n')
							.filter(line => line !== '')
					: [];
			};
			const http = readFileSync(path.join(folder, name, 'http.conf'), 'utf8');
			const written = lines('requests');
			const isWhole = written[0] === '# only these';
			const requests = isWhole ? written.slice(1) : [...written, ...randomRequests(name, http, written)];
			const differences = lines('differences').map(line => {
				const [pattern = '', judgement = ''] = line.split(' | ');
				return { pattern: new RegExp(pattern), judgement, used: false };
			});
			return { name, isSite, http, requests, kept: lines('kept'), differences };
		});
}

/**
 * Returns random requests. Their paths come from the locations and from the requests in the case's file; some are changed at
 * random.
 */
function randomRequests(name: string, http: string, written: readonly string[]): string[] {
	const chance = new SeededChance([...name].reduce((sum, char) => sum + char.charCodeAt(0), 7));
	const paths = [...http.matchAll(/location\s+(?:=|\^~)?\s*(\/[^\s{]*)/g)].map(([, found]) => found!);
	const targets = [...new Set([...paths, ...written.map(line => targetOf(line)), '/', '/a.txt', '/docs/', '/missing'])];
	const suffixes = [...new Set(written.map(line => / (.+)$/.exec(line.replace(/^[A-Z]+ /, ''))?.[1] ?? ''))];
	return Array.from({ length: RANDOM_REQUESTS }, () => {
		let [target, query] = chance.of(targets).split('?') as [string, string?];
		const change = chance.below(9);
		if (change === 0) target = target.replace(/[a-z]/, char => char.toUpperCase());
		else if (change === 1) target += chance.of(['x', '/', '/x', '.txt', '.php', '/index.html']);
		else if (change === 2) target = target.replace('/', '//');
		else if (change === 3) target = target.replace(/[a-z]/, char => `%${char.charCodeAt(0).toString(16)}`);
		else if (change === 4) target = `/x/..${target}`;
		else if (change === 5) target = target.slice(0, Math.max(1, chance.below(target.length + 1)));
		else if (change === 6) query = 'a=1&b=%20';
		const method = chance.of(['', '', '', '', 'HEAD ', 'POST ']);
		const suffix = chance.of(suffixes);
		return `${method}${target}${query === undefined ? '' : `?${query}`}${suffix === '' ? '' : ` ${suffix}`}`;
	});
}

function targetOf(line: string): string {
	return /^(?:[A-Z]+ )?(\S+)/.exec(line)![1]!;
}

const agents = {
	http: new Agent({ keepAlive: true, maxSockets: 4 }),
	https: new SecureAgent({ keepAlive: true, maxSockets: 4, rejectUnauthorized: false }),
};

/** The ports of a case, with and without TLS. */
interface Ports {
	readonly plain: number;
	readonly tls: number;
}

async function answerOf({ plain, tls }: Ports, line: string): Promise<Answer> {
	const words = line.split(' ');
	const method = /^[A-Z]+$/.test(words[0]!) ? words.shift()! : 'GET';
	const from = words.at(-1)!.startsWith('from=') ? words.pop()!.slice('from='.length) : undefined;
	const target = words.shift()!;
	const origin = words[0] !== undefined && !/^[A-Z][\w-]*:/.test(words[0]) ? words.shift()! : 'localhost';
	const [, scheme, login, host] = /^(https:\/\/)?(?:(.*)@)?(.+)$/.exec(origin)!;
	const sentFields = words
		.map(word => /^([\w-]+):(.*)$/.exec(word)!)
		.map(([, name, value]) => [name!, decodeURIComponent(value!)]);
	const options = {
		...{ host: '127.0.0.1', method, path: target, auth: login, localAddress: from },
		headers: { Host: host, 'Accept-Encoding': 'identity', ...Object.fromEntries(sentFields) },
	};
	const sent =
		scheme === undefined
			? request({ ...options, port: plain, agent: agents.http })
			: secureRequest({ ...options, port: tls, agent: agents.https, servername: host });
	sent.end(method === 'POST' ? 'body' : undefined);
	// `return 444` closes the connection without an answer.
	const response = await once(sent, 'response').then(
		([answer]) => answer,
		() => undefined,
	);
	if (response === undefined) return { status: 0, location: undefined, body: '', fields: {} };
	let body = '';
	for await (const chunk of response) body += chunk;
	for (const port of upstreamPorts) body = body.replaceAll(port, 'UPSTREAM');
	const headers = response.headers;
	const moved = headers.location;
	// Where the configuration gives only a path, nginx adds the scheme, host and port of its own address.
	const location =
		moved === undefined
			? undefined
			: String(moved).replace(new RegExp(`^https?://${host}(?::(?:${plain}|${tls}))?/`), '/');
	// The built-in error pages of the two servers differ, so they are not compared.
	const isOwn = response.statusCode >= 300 && (body === '' || /<center>nginx/.test(body));
	const fields = Object.fromEntries(
		COMPARED_FIELDS.filter(field => field in headers).map(field => [field, String(headers[field])]),
	);
	return { status: response.statusCode, location, body: isOwn ? '' : body, fields };
}

const folder = temporaryFolder();
cpSync(path.join(import.meta.dirname, 'import-nginx-site'), path.join(folder, 'site'), { recursive: true });
mkdirSync(path.join(folder, 'logs'));
/** The upstreams, one for each server, so that their request counts can be compared. */
const upstreams = [createUpstream(), createUpstream()] as const;
const upstreamPorts: string[] = [];
for (const upstream of upstreams) {
	upstream.listen(0, '127.0.0.1');
	await once(upstream, 'listening');
	upstreamPorts.push(String((upstream.address() as AddressInfo).port));
}

/**
 * Returns a server that answers with a description of the request. The query determines the answer: `answer=404` sets the status,
 * `type=text/html` the content type, and `control=max-age=60` the Cache-Control. With `count`, the body says how often this
 * target has been requested.
 */
function createUpstream(): Server {
	const counts = new Map<string, number>();
	return createServer((got, response) => {
		const target = got.url!;
		const query = new URLSearchParams(target.split('?')[1]);
		const fields = ['host', 'x-real', 'x-path', 'x-user'].map(field => got.headers[field] ?? '-');
		if (target === '/verify')
			response.statusCode =
				got.headers.cookie === undefined && got.headers['x-original-uri']?.includes('secret') ? 401 : 204;
		if (/^\d{3}$/.test(query.get('answer') ?? '')) response.statusCode = Number(query.get('answer'));
		for (const [name, field] of [
			['type', 'Content-Type'],
			['control', 'Cache-Control'],
		] as const) {
			if (query.has(name)) response.setHeader(field, query.get(name)!);
		}
		if (query.has('count')) {
			counts.set(target, (counts.get(target) ?? 0) + 1);
			fields.push(`count ${counts.get(target)}`);
		}
		response.setHeader('X-User', 'alice');
		got
			.resume()
			.on('end', () =>
				response.end(response.statusCode === 204 ? undefined : `${got.method} ${target} ${fields.join(' ')}`),
			);
	});
}

const CASES = [...casesIn(path.join(ROOT, FOLDERS.features), false), ...casesIn(path.join(ROOT, FOLDERS.sites), true)];
for (const [flags, user, password] of [
	['-cbB', 'ann', 'one'],
	['-bB', 'bob', 'two'],
] as const) {
	execFileSync('htpasswd', ['-C', '4', flags, path.join(folder, 'accounts'), user, password], { stdio: 'ignore' });
}
const authority = await TestAuthority.make();
const { certificate, key } = await authority.issue({ names: ['localhost', '*.test'] });
writeFileSync(path.join(folder, 'certificate.pem'), certificate);
writeFileSync(path.join(folder, 'key.pem'), key);
const ports = await freePorts(4 * CASES.length);
const portsOf = (side: number): Ports[] =>
	CASES.map((_, index) => {
		const first = 2 * (side * CASES.length + index);
		return { plain: ports[first]!, tls: ports[first + 1]! };
	});
const ourPorts = portsOf(0);
const theirPorts = portsOf(1);
/** The values of words in configurations that are known only at run time. */
const WORDS: { readonly [word: string]: string } = {
	CACHE: path.join(folder, 'cache'),
	CACHE2: path.join(folder, 'cache2'),
	CACHE3: path.join(folder, 'cache3'),
	CACHE4: path.join(folder, 'cache4'),
	CACHE5: path.join(folder, 'cache5'),
	SITE: path.join(folder, 'site'),
	ACCOUNTS: path.join(folder, 'accounts'),
	CERTIFICATE: path.join(folder, 'certificate.pem'),
	KEY: path.join(folder, 'key.pem'),
};
const httpOf = ({ http }: ImportCase, { plain, tls }: Ports, UPSTREAM: string): string => {
	const words = { ...WORDS, UPSTREAM, PORT: String(plain), TLS: String(tls) };
	return http.replace(/\b[A-Z]+\d?\b/g, word =>
		Object.hasOwn(words, word) ? words[word as keyof typeof words] : word,
	);
};
const everything = (of: readonly Ports[], upstream: string): string =>
	CASES.map((one, index) => httpOf(one, of[index]!, upstream)).join('\n');
writeFileSync(
	path.join(folder, 'nginx.conf'),
	`daemon off; worker_processes 1; pid nginx.pid; user root; events { }
http {
	access_log off;
	include /etc/nginx/mime.types;
	client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
	${everything(theirPorts, upstreamPorts[1]!)}
}
`,
);
writeFileSync(path.join(folder, 'imported.conf'), `http {\n${everything(ourPorts, upstreamPorts[0]!)}\n}\n`);
const imported = await runCommand(['import', 'imported.conf', '--output', 'Configfile'], { cwd: folder });

const peers = suite('configurations imported from nginx');
let nginx: ChildProcess;
let nginxEnded: Promise<unknown>;
let svc: ServerProcess;
let compared = 0;

peers.before(async () => {
	if (imported.status !== 0) console.error(imported.stderr);
	nginx = spawn('nginx', ['-p', folder, '-e', 'error.log', '-c', 'nginx.conf'], { stdio: 'inherit' });
	nginxEnded = once(nginx, 'close');
	process.once('exit', () => nginx.kill('SIGKILL'));
	await waitForPort(theirPorts[0]!.plain).catch(error => {
		console.error(readFileSync(path.join(folder, 'error.log'), 'utf8'));
		throw error;
	});
	assert.is(imported.status, 0, imported.stderr);
	if (process.env.DUMP) writeFileSync(process.env.DUMP, readFileSync(path.join(folder, 'Configfile')));
	svc = await serve(['Configfile'], ourPorts[0]!.plain, { cwd: folder }).catch(error => {
		console.error(error, imported.stderr);
		throw error;
	});
	for (const [index, one] of CASES.entries()) differencesByCase.set(one, compareAnswers(one, index));
	await Promise.all(differencesByCase.values());
});

peers.after(async () => {
	agents.http.destroy();
	agents.https.destroy();
	nginx?.kill('SIGTERM');
	await Promise.all([nginxEnded, svc?.stop()]);
	for (const upstream of upstreams) upstream.close();
	const sites = CASES.filter(({ isSite }) => isSite);
	const large = sites.filter(({ http }) => http.split('\n').length > 300);
	console.log(
		`${CASES.length} configurations, of which ${sites.length} are whole and ${large.length} of these have more than 300 lines; ${compared} requests compared`,
	);
});

peers('the results pass every check', () => {
	assert.is(imported.status, 0, imported.stderr);
	assert.not.match(imported.stderr, /does not pass/, imported.stderr);
});

/** The requests of each case that the two servers answer differently. */
const differencesByCase = new Map<ImportCase, Promise<readonly string[]>>();

/** Sends the requests of a case to both servers, and returns those that are answered differently. Cases run concurrently. */
async function compareAnswers(importCase: ImportCase, index: number): Promise<readonly string[]> {
	const unexpected: string[] = [];
	for (const line of importCase.requests) {
		const [theirs, received] = await Promise.all([
			answerOf(theirPorts[index]!, line),
			answerOf(ourPorts[index]!, line),
		]);
		let ours = received;
		for (const { accepts } of GENERAL_DIFFERENCES) ours = accepts(ours, theirs);
		compared++;
		if (JSON.stringify(ours) === JSON.stringify(theirs)) continue;
		const judged = importCase.differences.find(({ pattern }) => pattern.test(line));
		if (judged) judged.used = true;
		else unexpected.push(`${line}\n  ours  ${JSON.stringify(ours)}\n  nginx ${JSON.stringify(theirs)}`);
	}
	return unexpected;
}

for (const [index, one] of CASES.entries()) {
	peers(one.name, async () => {
		const text = `http {\n${httpOf(one, ourPorts[index]!, upstreamPorts[0]!)}\n}\n`;
		const { kept, diagnostics } = importNginx({ text, name: 'nginx.conf', folder }, diskReader(folder));
		assert.equal(diagnostics, []);
		assert.equal(
			kept.map(({ directive }) => directive),
			one.kept,
		);
		const unexpected = await differencesByCase.get(one)!;
		if (unexpected.length > 0) console.error(`\n${one.name}\n${unexpected.slice(0, 12).join('\n')}`);
		assert.is(unexpected.length, 0);
		for (const { pattern, used } of one.differences) assert.ok(used, `the difference ${pattern} does not occur`);
	});
}

peers.run();
