/**
 * The executable for Linux is an edited copy of Node's official executable: it does not need libatomic, its symbols are stripped,
 * and it contains Unicode data for English only. A program computes the same results with either executable.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { linuxExecutable } from '../../../cli/packaging/node-executable/linux-executable.ts';
import { temporaryFolder } from '../../harness.ts';

const folder = temporaryFolder();
const executable = path.join(folder, 'executable');

/** A program whose output depends on Unicode data, while threads allocate functions and WebAssembly code. */
const PROGRAM = `
const { Worker } = require('node:worker_threads');
const { domainToASCII } = require('node:url');
const zones = ['UTC', ...Intl.supportedValuesOf('timeZone')];
const locales = ['en-US', 'en-GB', 'en-AU', 'en-IN', 'en-ZA', 'en-NZ'];
// Formats take most of the time, so all locales are used with a few zones only.
const names = zones.map((timeZone, at) => (at % 40 === 0 ? locales : ['en-US']).map(locale => ['short', 'longOffset'].map(timeZoneName => {
	const format = new Intl.DateTimeFormat(locale, { timeZone, timeZoneName });
	return [0, 1.75e12, 1.76e12].map(time => format.format(time));
})));
const words = ['z', 'é', 'e', 'Z', 'a10', 'a9', 'ß', 'ss', 'Ångström', 'angstrom', '中', 'я', ''];
const texts = {
	names,
	sorted: [...words].sort(new Intl.Collator('en', { numeric: true, sensitivity: 'base' }).compare),
	compared: [...words].sort((a, b) => a.localeCompare(b)),
	normalized: ['NFC', 'NFD', 'NFKC', 'NFKD'].map(form => 'Å\\u0041\\u030aﬁ가'.normalize(form)),
	lower: 'İSTANBUL Σ ΑΣ'.toLowerCase(),
	domains: ['bücher.example', 'faß.de', '☃.net', 'xn--a', 'ａ.com'].map(domainToASCII),
	numbers: (1234567.891).toLocaleString('en'),
	letters: 'aé中я1_ '.match(/\\p{Letter}/gu),
	decoded: new TextDecoder('latin1').decode(new Uint8Array([0xe9, 0x80])),
};
const busy = \`
	const code = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 127, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0, 10, 6, 1, 4, 0, 65, 42, 11]);
	let sum = 0;
	for (let i = 0; i < 300; i++) {
		const made = Array.from({ length: 50 }, (_, k) => new Function('return ' + k));
		sum += made.reduce((all, f) => all + f(), 0);
		const { exports } = new WebAssembly.Instance(new WebAssembly.Module(code), {});
		sum += exports.f();
	}
	require('node:worker_threads').parentPort.postMessage(sum);
\`;
const sums = Array.from({ length: 4 }, () => new Promise((resolve, reject) => {
	const worker = new Worker(busy, { eval: true });
	worker.on('message', resolve);
	worker.on('error', reject);
}));
Promise.all(sums).then(sums => console.log(JSON.stringify({ ...texts, sums })));
`;

/** Returns a program in the form that Node embeds. */
function embeddableProgram(source: string): Buffer {
	writeFileSync(path.join(folder, 'main.js'), source);
	const config = { main: 'main.js', output: 'blob', disableExperimentalSEAWarning: true };
	writeFileSync(path.join(folder, 'sea.json'), JSON.stringify(config));
	const result = spawnSync(process.execPath, ['--experimental-sea-config', 'sea.json'], { cwd: folder });
	assert.is(result.status, 0, String(result.stderr));
	return readFileSync(path.join(folder, 'blob'));
}

const node = readFileSync(process.execPath);
const linux = suite('linux executable');

linux.before(() => writeFileSync(executable, linuxExecutable(node, embeddableProgram(PROGRAM)), { mode: 0o755 }));

linux('the executable needs no libatomic, and the dynamic linker resolves all it needs', () => {
	const needs = (file: string): string =>
		spawnSync(file, { env: { LD_TRACE_LOADED_OBJECTS: '1', LD_WARN: '1', LD_BIND_NOW: '1' }, encoding: 'utf8' }).stdout;
	assert.match(needs(process.execPath), 'libatomic');
	assert.not.match(needs(executable), /libatomic|undefined|not found/);
	assert.match(needs(executable), 'libstdc++.so.6');
});

linux('the executable is smaller than the official one by what it does not contain', () => {
	assert.ok(statSync(executable).size < 90e6, String(statSync(executable).size));
});

linux('a program computes in it what it computes in the official Node, in all locales of the environment', () => {
	const expected = spawnSync(process.execPath, [path.join(folder, 'main.js')], { encoding: 'utf8' });
	assert.is(expected.status, 0, expected.stderr);
	for (const LANG of ['C', 'de_DE.UTF-8']) {
		const actual = spawnSync(executable, { encoding: 'utf8', env: { LANG } });
		assert.is(actual.stderr, '');
		assert.is(actual.stdout, expected.stdout);
	}
});

linux('a program that does not fit is refused with both sizes', () => {
	assert.throws(
		() => linuxExecutable(node, Buffer.alloc(40e6)),
		/The program has 400000\d\d bytes; \d+ fit into the executable/,
	);
});

linux('an executable that needs more of libatomic than one function is refused by name', () => {
	const other = Buffer.from(node);
	const at = other.indexOf('\0__atomic_compare_exchange\0') + 1;
	other.write('__atomic_compare_exchangf', at);
	assert.throws(() => linuxExecutable(other, Buffer.alloc(1)), /needs __atomic_compare_exchangf of libatomic\.so\.1/);
});

linux('what is not such an executable is refused', () => {
	assert.throws(() => linuxExecutable(Buffer.alloc(4096), Buffer.alloc(1)), /not a 64-bit little-endian ELF file/);
});

if (process.platform === 'linux') linux.run();
