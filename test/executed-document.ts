/**
 * Executes the code blocks of a Markdown document, such as the README or a guide.
 *
 * A block whose info string has a second word (```configfile Configfile) is written to the file of that name in a scratch folder.
 * A `console` block contains commands after `$ ` and their expected output. In the output, `…` at the end of a line stands for
 * the rest of the line, and a line `…` for any number of lines. A command that ends in ` &` runs until the end of the document;
 * the next command starts only when the ports of its configuration are open. For `npm` commands, only the existence of the script
 * is checked. The ports that a document names may be in use on this machine, so they are replaced by free ports.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import * as assert from 'uvu/assert';
import { freePorts, ROOT, SVC, temporaryFolder, waitForPort } from './harness.ts';

/** A fenced code block. */
export interface CodeBlock {
	/** The line at which the code block begins. */
	readonly line: number;
	readonly language: string;
	/** The file whose contents the code block shows. */
	readonly file: string | undefined;
	readonly text: string;
}

/** The languages that code blocks may have. Blocks in languages other than `console` only show files. */
export const BLOCK_LANGUAGES: ReadonlySet<string> = new Set([
	...['console', 'configfile', 'caddyfile', 'json', 'text', 'html', 'sh', 'php', 'yaml', 'dockerfile'],
]);

/** Returns the code blocks of a document. `document` is a path relative to the repository. */
export function readBlocks(document: string): CodeBlock[] {
	const lines = readFileSync(path.join(ROOT, document), 'utf8').split('\n');
	const blocks: CodeBlock[] = [];
	for (let at = 0; at < lines.length; at++) {
		const open = /^```(\S*)(?: (\S+))?$/.exec(lines[at]!);
		if (!open) continue;
		const end = lines.indexOf('```', at + 1);
		assert.ok(end > at, `${document}:${at + 1}: the block does not end`);
		const text = `${lines.slice(at + 1, end).join('\n')}\n`;
		blocks.push({ line: at + 1, language: open[1]!, file: open[2], text });
		at = end;
	}
	return blocks;
}

/** Converts expected output with `…` to a pattern. */
function toPattern(expected: string): RegExp {
	const lines = expected.split('\n').map(line => {
		if (line.trim() === '…') return '(?:.*\\n)*?.*';
		const cut = line.endsWith('…');
		const quoted = (cut ? line.slice(0, -1) : line).replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
		return cut ? `${quoted}.*` : quoted;
	});
	return new RegExp(`^${lines.join('\\n')}\\s*$`);
}

/** The scratch folder, environment and free ports with which the code blocks of a Markdown document are executed. */
interface Scratch {
	readonly folder: string;
	readonly environment: NodeJS.ProcessEnv;
	/** Returns the text with the ports that the document names replaced by free ports. */
	localize(text: string): string;
}

async function createScratch(blocks: readonly CodeBlock[]): Promise<Scratch> {
	const folder = temporaryFolder();
	const bin = path.join(folder, '.bin');
	mkdirSync(bin);
	symlinkSync(SVC, path.join(bin, 'svc'));
	// Creates the folders that the configurations serve. On a reader's machine, they exist already.
	for (const { text } of blocks) {
		for (const [, root] of text.matchAll(/^\s*root \.\/(\S+)$/gm))
			mkdirSync(path.join(folder, root!), { recursive: true });
	}
	// Ports with fewer digits are not replaced, because tests may not listen on them.
	const namedPorts = new Set(
		blocks.flatMap(({ text }) => [...text.matchAll(/:(\d{4,5})\b/g)].map(([, port]) => port!)),
	);
	const freePortNumbers = await freePorts(namedPorts.size);
	const ports = new Map([...namedPorts].map((port, index) => [port, String(freePortNumbers[index])]));
	return {
		folder,
		environment: {
			...process.env,
			PATH: `${bin}:${process.env.PATH}`,
			NO_COLOR: '1',
			XDG_STATE_HOME: path.join(folder, '.state'),
			SVC_TLS_STORE: path.join(folder, '.store'),
		},
		localize: text => text.replace(/:(\d{4,5})\b/g, (whole, port) => (ports.has(port) ? `:${ports.get(port)}` : whole)),
	};
}

/** Executes all blocks in their order. Throws an assertion error if a command does not print what the document shows. */
export async function executeBlocks(document: string, blocks: readonly CodeBlock[]): Promise<void> {
	const { folder, environment, localize } = await createScratch(blocks);
	const scripts = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')).scripts as Record<string, string>;
	const running: ReturnType<typeof spawn>[] = [];
	try {
		for (const block of blocks) {
			if (block.file !== undefined) {
				const file = path.join(folder, block.file);
				mkdirSync(path.dirname(file), { recursive: true });
				writeFileSync(file, localize(block.text));
				continue;
			}
			if (block.language !== 'console') continue;
			for (const part of block.text.split(/^\$ /m).slice(1)) {
				const newline = part.indexOf('\n');
				const command = part.slice(0, newline);
				const expected = part.slice(newline + 1).trimEnd();
				if (/^(npm|git) /.test(command)) {
					for (const [, script] of command.matchAll(/npm (?:run )?(\w[\w:]*)/g)) {
						assert.ok(script === 'ci' || script! in scripts, `${document}:${block.line}: no script ${script}`);
					}
					continue;
				}
				if (command.endsWith(' &')) {
					const child = spawn('sh', ['-c', `exec ${localize(command.slice(0, -2))}`], {
						cwd: folder,
						env: environment,
						stdio: 'ignore',
					});
					running.push(child);
					for (const port of portsOf(command, folder)) await waitForPort(port, 60_000);
					continue;
				}
				const output = (await shellOutput(localize(command), folder, environment)).replaceAll('\r', '').trimEnd();
				const wanted = toPattern(localize(expected));
				assert.ok(
					wanted.test(output),
					`${document}:${block.line}: \`${command}\` printed:\n${output}\nbut it shows:\n${expected}`,
				);
			}
		}
	} finally {
		for (const child of running) {
			const whenEnded = once(child, 'close');
			child.kill('SIGTERM');
			await whenEnded;
		}
	}
}

/** Returns the ports on which a command such as `svc run api.conf` will listen: the first port in its configuration. */
function portsOf(command: string, folder: string): number[] {
	const last = command.split(' ').at(-2)!;
	const file = path.join(folder, last === 'run' ? 'Configfile' : last);
	const port = /^(?![\t#{}])[^\n]*?:(\d+)/m.exec(readFileSync(file, 'utf8'))?.[1];
	assert.ok(port !== undefined, `${file} names no port`);
	return [Number(port)];
}

/** Runs a command and returns everything that it prints. A command that takes too long is ended, with its children. */
async function shellOutput(command: string, cwd: string, env: NodeJS.ProcessEnv): Promise<string> {
	const child = spawn('sh', ['-c', `${command} 2>&1`], {
		cwd,
		env,
		detached: true,
		stdio: ['ignore', 'pipe', 'inherit'],
	});
	const timer = setTimeout(() => process.kill(-child.pid!, 'SIGTERM'), 120_000);
	try {
		return await textOf(child.stdout);
	} finally {
		clearTimeout(timer);
	}
}
