/**
 * The README is correct: every code block in it is executed.
 *
 * A block whose info string has a second word (```configfile Configfile) is written to the file of that name in a scratch
 * folder. A `console` block holds commands after `$ ` and their output; `…` at the end of a line stands for the rest of the
 * line, and a line `…` for any number of lines. A command that ends in ` &` runs until the test ends. For `npm` commands,
 * the test only checks that the script exists: CI runs them in a separate clone.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, ROOT, SVC, temporaryFolder, waitForPort } from './harness.ts';

/** A fenced code block. */
interface ReadmeBlock {
	readonly line: number;
	readonly language: string;
	readonly file: string | undefined;
	readonly text: string;
}

function readBlocks(): ReadmeBlock[] {
	const lines = readFileSync(path.join(ROOT, 'README.md'), 'utf8').split('\n');
	const blocks: ReadmeBlock[] = [];
	for (let at = 0; at < lines.length; at++) {
		const open = /^```(\S*)(?: (\S+))?$/.exec(lines[at]!);
		if (!open) continue;
		const end = lines.indexOf('```', at + 1);
		assert.ok(end > at, `README.md:${at + 1}: the block does not end`);
		const text = `${lines.slice(at + 1, end).join('\n')}\n`;
		blocks.push({ line: at + 1, language: open[1]!, file: open[2], text });
		at = end;
	}
	return blocks;
}

/** Converts expected output with `…` to a pattern. */
function pattern(expected: string): RegExp {
	const lines = expected.split('\n').map(line => {
		if (line.trim() === '…') return '(?:.*\\n)*?.*';
		const cut = line.endsWith('…');
		const quoted = (cut ? line.slice(0, -1) : line).replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
		return cut ? `${quoted}.*` : quoted;
	});
	return new RegExp(`^${lines.join('\\n')}\\s*$`);
}

const readme = suite('README');
const blocks = readBlocks();

readme('has blocks to execute', () => {
	assert.ok(blocks.some(block => block.language === 'console'));
	const known = new Set(['console', 'configfile', 'caddyfile', 'json', 'text', 'html', 'sh']);
	assert.equal(
		blocks.filter(block => !known.has(block.language)).map(block => `README.md:${block.line}: ${block.language}`),
		[],
	);
});

readme('every block prints what the README shows', async () => {
	const folder = temporaryFolder();
	const bin = path.join(folder, '.bin');
	mkdirSync(bin);
	symlinkSync(SVC, path.join(bin, 'svc'));
	// The ports that the README names may be in use on this machine, so free ports replace them.
	const named = ['8080', '8081', '2019', '9000'];
	const free = await freePorts(named.length);
	const localize = (text: string): string =>
		named.reduce((result, port, index) => result.replaceAll(`:${port}`, `:${free[index]}`), text);
	const scripts = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')).scripts as Record<string, string>;
	const environment = { ...process.env, PATH: `${bin}:${process.env.PATH}`, NO_COLOR: '1' };
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
						assert.ok(script === 'ci' || script! in scripts, `README.md:${block.line}: no script ${script}`);
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
					const port = /:(\d+)/.exec(readFileSync(path.join(folder, 'Configfile'), 'utf8'))?.[1];
					await waitForPort(Number(port));
					continue;
				}
				const output = (await shellOutput(localize(command), folder, environment)).replaceAll('\r', '').trimEnd();
				const wanted = pattern(localize(expected));
				assert.ok(
					wanted.test(output),
					`README.md:${block.line}: \`${command}\` printed:\n${output}\nbut it shows:\n${expected}`,
				);
			}
		}
	} finally {
		for (const child of running) {
			const ended = once(child, 'close');
			child.kill('SIGTERM');
			await ended;
		}
	}
});

/** Runs a command and returns everything that it prints. If it takes too long, it and its children are ended. */
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

readme.run();
