/**
 * A file is atomically replaced under load: each response is entirely the old or entirely the new version, including
 * ETag and length.
 */
import { once } from 'node:events';
import { renameSync, statSync, writeFileSync } from 'node:fs';
import { Agent, get, type IncomingHttpHeaders } from 'node:http';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, type ServerProcess, serve, temporaryFolder } from '../harness.ts';

const CLIENTS = 16;
/**
 * Milliseconds between replacements. `OFTEN_MS` is so short that the file is always changing, `SELDOM_MS` so long that the server
 * caches the file in memory.
 */
const OFTEN_MS = 25;
const SELDOM_MS = 3000;
/** Milliseconds after a replacement within which the previous version may still be served. */
const STALE_MS = 1500;

const replacedFile = suite('a file replaced under load');
let server: ServerProcess;
let port = 0;
let root = '';
const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });

/** A complete response. */
interface Answer {
	readonly status: number;
	readonly headers: IncomingHttpHeaders;
	readonly body: Buffer;
}

async function ask(file: string, headers: Record<string, string> = {}): Promise<Answer> {
	const request = get({ port, host: '127.0.0.1', path: `/${file}`, agent, headers });
	const [response] = await once(request, 'response');
	const chunks: Buffer[] = [];
	for await (const chunk of response) chunks.push(chunk);
	return { status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) };
}

/** Returns the text of a version: every line names the version, and versions differ in length. */
function versionText(number: number, lines: number): string {
	return `version ${number}\n`.repeat(lines + (number % 7));
}

/** Returns the version number of a body, or undefined if the body is not exactly one version. */
function versionOf(text: string, lines: number): number | undefined {
	const number = Number(/^version (\d+)\n/.exec(text)?.[1]);
	return text === versionText(number, lines) ? number : undefined;
}

replacedFile.before(async () => {
	const folder = temporaryFolder();
	root = folder;
	[port = 0] = await freePorts(1);
	const file = path.join(folder, 'Configfile');
	writeFileSync(
		file,
		`{
	threads 2
}
http://127.0.0.1:${port} {
	encode gzip
	root ${folder}
	file_server
}
`,
	);
	server = await serve([file], port, { env: { XDG_STATE_HOME: folder } });
});

replacedFile.after(async () => {
	agent.destroy();
	await server?.stop();
});

for (const [what, lines, encoded, interval] of [
	['small', 400, false, OFTEN_MS],
	['large', 60_000, false, OFTEN_MS],
	['small, encoded', 400, true, OFTEN_MS],
	['large, encoded', 60_000, true, OFTEN_MS],
	['small, cached in memory', 400, false, SELDOM_MS],
	['small, encoded, cached in memory', 400, true, SELDOM_MS],
	['large, replaced seldom', 60_000, false, SELDOM_MS],
] as const) {
	replacedFile(`every response is one whole version: ${what}`, async () => {
		const name = `${what.replaceAll(/, | /g, '-')}.txt`;
		const file = path.join(root, name);
		/** The ETag that the server gives each version, derived from the file's mtime and size. */
		const tags: string[] = [];
		let current = -1;
		/** The time at which each version replaced the previous one, by the number of the version. */
		const replacedAtMs: number[] = [];
		const replace = (): void => {
			const next = current + 1;
			writeFileSync(`${file}.new`, versionText(next, lines));
			const { mtimeNs, size } = statSync(`${file}.new`, { bigint: true });
			tags[next] = `"${mtimeNs.toString(36)}-${size.toString(36)}`;
			renameSync(`${file}.new`, file);
			current = next;
			replacedAtMs[next] = performance.now();
		};
		replace();
		const timer = setInterval(replace, interval);
		const end = performance.now() + Math.max(4000, 3.5 * interval);
		let answers = 0;
		let unchanged = 0;
		const seen = new Set<number>();
		const client = async (): Promise<void> => {
			let last: string | undefined;
			let lastNumber = -1;
			for (let turn = 0; performance.now() < end; turn++) {
				const startedAt = performance.now();
				const { status, headers, body } = await ask(name, {
					...(encoded && { 'Accept-Encoding': 'gzip' }),
					...(last !== undefined && turn % 2 === 1 && { 'If-None-Match': last }),
				});
				const notStale = (number: number): void => {
					const gone = replacedAtMs[number + 1];
					assert.ok(
						gone === undefined || startedAt - gone < STALE_MS,
						`version ${number}, ${startedAt - gone!} ms too late`,
					);
				};
				if (status === 304) {
					notStale(lastNumber);
					unchanged += 1;
					assert.is(headers.etag, last);
					continue;
				}
				assert.is(status, 200);
				assert.is(headers['content-encoding'], encoded ? 'gzip' : undefined);
				if (headers['content-length'] !== undefined) assert.is(Number(headers['content-length']), body.length);
				const number = versionOf((encoded ? gunzipSync(body) : body).toString(), lines);
				assert.ok(number !== undefined, 'the response mixes versions');
				assert.is(headers.etag, `${tags[number]}${encoded ? '-gzip"' : '"'}`, `version ${number}`);
				notStale(number);
				lastNumber = number;
				last = headers.etag!;
				answers += 1;
				seen.add(number);
			}
		};
		try {
			await Promise.all(Array.from({ length: CLIENTS }, client));
		} finally {
			clearInterval(timer);
		}
		assert.ok(answers > 200 || lines > 1000, `${answers} answers`);
		assert.ok(seen.size > 2, `${seen.size} versions seen, ${answers} answers, ${unchanged} times 304`);
	});
}

replacedFile.run();
