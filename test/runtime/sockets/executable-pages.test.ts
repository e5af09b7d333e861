/** Pages of the executable file that a process no longer needs are removed from its memory, and the process keeps running. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { executablePageRelease, unchangedMappings } from '../../../runtime/sockets/executable-pages.ts';
import { isDirectIo } from '../../../runtime/sockets/io-mode.ts';

const test = suite('pages of the executable file');

/** Returns an entry of `/proc/self/smaps`. */
function mappingEntry(range: string, permissions: string, path: string, { anonymous = 0, swap = 0 } = {}): string {
	return `${range} ${permissions} 00000000 fe:00 7749697                    ${path}
Size:               4096 kB
Rss:                4096 kB
Anonymous:          ${anonymous} kB
AnonHugePages:      0 kB
Swap:               ${swap} kB
SwapPss:            0 kB
VmFlags: rd mr mw me
`;
}

const PROGRAM = '/usr/bin/svc with a space';
const HEAD = mappingEntry('00400000-0082e000', 'r--p', PROGRAM);
const CODE = mappingEntry('0082e000-03489000', 'r-xp', PROGRAM);
const EXPECTED = [
	{ start: 0x400000n, size: 0x42e000n },
	{ start: 0x82e000n, size: 0x2c5b000n },
];

test('mappings that are the same as the file are found', () => {
	assert.equal(unchangedMappings(HEAD + CODE, PROGRAM), EXPECTED);
});

test('mappings of other files and without a file are left out', () => {
	const others = mappingEntry('00300000-00400000', 'r--p', '/usr/bin/svc') + mappingEntry('10000-20000', 'r--p', '');
	assert.equal(unchangedMappings(others + HEAD + CODE, PROGRAM), EXPECTED);
});

for (const [what, entry] of [
	['can be written', mappingEntry('03489000-03500000', 'rw-p', PROGRAM)],
	['was written before it was protected', mappingEntry('03489000-03500000', 'r--p', PROGRAM, { anonymous: 24 })],
	['was written and is swapped out', mappingEntry('03489000-03500000', 'r--p', PROGRAM, { swap: 24 })],
	['is described incompletely', mappingEntry('03489000-03500000', 'r--p', PROGRAM).slice(0, 130)],
] as const) {
	test(`a mapping that ${what} ends the search`, () => {
		const laterMapping = mappingEntry('7f7fe3dc0000-7f7fe3fd5000', 'r-xp', PROGRAM);
		assert.equal(unchangedMappings(`${HEAD}${CODE}${entry}\n${laterMapping}`, PROGRAM), EXPECTED);
	});
}

/** Returns the resident memory of this process that consists of pages of files, in kilobytes. */
const residentFileKilobytes = (): number =>
	Number(/^RssFile:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))![1]);

test('the pages leave the memory of this process, which goes on', () => {
	if (process.platform !== 'linux' || !isDirectIo()) return;
	const release = executablePageRelease()!;
	const before = residentFileKilobytes();
	release();
	const after = residentFileKilobytes();
	assert.ok(after < before - 10_000, `${before} kB before, ${after} kB after`);
	assert.is([3, 1, 2].sort().join(), '1,2,3');
});

test('nothing is removed, and nothing is thrown, while no descriptor is free', () => {
	if (process.platform !== 'linux' || !isDirectIo()) return;
	const module = new URL('../../../runtime/sockets/executable-pages.ts', import.meta.url).href;
	const source = `
		import { openSync } from 'node:fs';
		const { executablePageRelease } = await import(${JSON.stringify(module)});
		const release = executablePageRelease();
		let error;
		while (error === undefined) try { openSync('/dev/null'); } catch (thrown) { error = thrown.code; }
		release();
		process._rawDebug(error);`;
	const command = ['-c', 'ulimit -n 100; exec "$0" --disable-warning=ExperimentalWarning --input-type=module -e "$1"'];
	const { status, stderr } = spawnSync('sh', [...command, process.execPath, source], { encoding: 'utf8' });
	assert.is(status, 0, stderr);
	assert.match(stderr, /^EMFILE$/m);
});

test.run();
