/**
 * Compares svc with Caddy: for every serve case written as a Compatfile, both must send the same status, location
 * and body.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { goldenCases } from '../golden.ts';
import { freePorts, rawExchange, serve, temporaryFolder, waitForPort } from '../harness.ts';

/** Permitted differences. The compared release (2.6) is older than the release that svc follows, or svc is stricter on purpose. */
const DIFFERENCES: { [request: string]: string } = {
	'hosts-and-wildcards: trailing dot': 'a host with its trailing dot is the same host to us',
	'matchers: query: a key is missing': 'since 2.7 the keys of `query` are and-ed',
	'directives-are-sorted: exact before prefix': 'since 2.8 an exact path sorts before its own prefix',
	'directives-are-sorted: rewrite before respond': 'since 2.8 an exact path sorts before its own prefix',
	'files-without-names-in-a-compatfile: a file by its path with a slash': '2.6 finds no file there',
	'files-without-names-in-a-compatfile: two slashes': '2.6 finds no file there',
	'files-without-names-in-a-compatfile: an index by its path with a slash': '2.6 finds no file there',
	'header-operations: all operations': '2.6 has no `>FIELD`',
	'header-operations: a path with encoded line breaks cannot split the response':
		'line ends become spaces when a field is set, so the body that shows the field has none',
	'routes-in-the-order-of-their-sort: both variables match': '2.6 does not reverse equal variables',
	'respond-body-and-status: placeholders, a value that looks like one stays as it is':
		'2.6 has no `{http.request.local.port}`',
};

/**
 * Cases that cannot be compared: those with directives that the compared release does not know, those in which it always behaves
 * differently (paths below files, queries of folder redirects, capture groups in expressions), and those with global options.
 */
const NOT_COMPARED: ReadonlySet<string> = new Set([
	'basic-auth',
	'clients-behind-trusted-proxies',
	'deferred-headers-of-unanswered-errors',
	'early-hints',
	'error-routes-by-status',
	'errors-in-a-compatfile',
	'every-placeholder-of-a-request',
	'expressions-and-later-matchers',
	'facts-of-directives',
	'facts-of-proxying',
	'facts-of-routes-and-responses',
	'forms-that-are-warned-of',
	'file-matchers-of-later-releases',
	'folder-redirects-keep-the-query',
	'groups-that-an-expression-does-not-have',
	'intercepted-responses',
	'maps-and-named-routes',
	'paths-below-a-file',
	'probes-of-a-compatfile',
	'proxies-within-proxies',
	'static-files-of-a-compatfile',
	'templates',
	'upstream-responses-handled',
	'uri-edits-of-a-compatfile',
	'uri-manipulation',
]);

const judged = suite('serve cases before Caddy');

for (const golden of goldenCases('serve')) {
	const text = golden.file('Compatfile');
	if (text === undefined || NOT_COMPARED.has(golden.name)) continue;
	judged(golden.name, async () => {
		const [ourPort, judgePort] = (await freePorts(2)) as [number, number];
		const folder = path.join(temporaryFolder(), golden.name);
		cpSync(golden.folder, folder, { recursive: true });
		const ours = await serve(['Compatfile'], ourPort, {
			cwd: folder,
			env: { PORT: String(ourPort), UPSTREAM: '127.0.0.1:1' },
		});
		const judgeFile = path.join(folder, 'Judgefile');
		writeFileSync(judgeFile, withoutAdmin(text));
		const environment = {
			...process.env,
			PORT: String(judgePort),
			UPSTREAM: '127.0.0.1:1',
			HOME: folder,
			XDG_DATA_HOME: folder,
			XDG_CONFIG_HOME: folder,
		};
		const adapted = spawnSync('caddy', ['adapt', '--config', judgeFile, '--adapter', 'caddyfile'], {
			cwd: folder,
			env: environment,
			encoding: 'utf8',
		});
		if (adapted.status !== 0) await ours.stop();
		assert.is(adapted.status, 0, `the judge refuses the configuration: ${adapted.stderr}`);
		const judge = spawn('caddy', ['run', '--config', judgeFile, '--adapter', 'caddyfile'], {
			cwd: folder,
			stdio: 'ignore',
			env: environment,
		});
		const judgeEnded = once(judge, 'close');
		try {
			await waitForPort(judgePort);
			const differences: string[] = [];
			for (const request of golden.oneOf('requests.http').text.split(/^### /m).slice(1)) {
				const name = request.slice(0, request.indexOf('\n')).trim();
				if (`${golden.name}: ${name}` in DIFFERENCES) continue;
				const [mine, theirs] = await Promise.all(
					[ourPort, judgePort].map(async port =>
						comparedParts(await rawExchange(port, wireBytes(request.replaceAll('{$PORT}', String(port)))), port),
					),
				);
				if (mine !== theirs) differences.push(`${name}\n  ours:  ${mine}\n  judge: ${theirs}`);
			}
			assert.is(differences.join('\n'), '');
		} finally {
			judge.kill('SIGKILL');
			await judgeEnded;
			await ours.stop();
		}
	});
}

judged.run();

/** Disables Caddy's Admin API and automatic HTTPS, unless the case sets them itself. */
function withoutAdmin(text: string): string {
	const options = ['admin off', 'auto_https off'].filter(option => !text.includes(option));
	const lines = options.map(option => `\t${option}\n`).join('');
	return text.startsWith('{\n') ? text.replace('{\n', `{\n${lines}`) : `{\n${lines}}\n${text}`;
}

/** Returns a request of `requests.http` as the bytes to send. */
function wireBytes(request: string): string {
	const text = request.slice(request.indexOf('\n') + 1);
	const split = text.indexOf('\n\n');
	const body = split === -1 ? '' : text.slice(split + 2).replace(/\n+$/, '');
	const head = (split === -1 ? text : text.slice(0, split)).trimEnd().split('\n');
	if (body) head.push(`Content-Length: ${Buffer.byteLength(body)}`);
	head.push('Connection: close');
	return `${head.join('\r\n')}\r\n\r\n${body}`;
}

/**
 * Returns the part of a response that a configuration determines: the status, `Location`, fields that start with `X-`, and the
 * body.
 */
function comparedParts(answer: string, port: number): string {
	const split = answer.indexOf('\r\n\r\n');
	const lines = answer.slice(0, split).split('\r\n');
	const fields = lines.filter(line => /^(location|x-[^:]*|content-type):/i.test(line)).map(line => line.toLowerCase());
	const essentials = [lines[0]!.slice(9, 12), ...fields.sort(), JSON.stringify(answer.slice(split + 4))];
	return essentials.join(' | ').replaceAll(String(port), '<port>');
}
