/** Files are served from memory, but their old contents are never served after a change that the system can report. */
import {
	chmodSync,
	linkSync,
	mkdirSync,
	readdirSync,
	realpathSync,
	renameSync,
	rmSync,
	symlinkSync,
	utimesSync,
	writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { BodySource } from '../../../compiler/exchange/body.ts';
import type { FileError, FileReader, OpenFile } from '../../../compiler/exchange/leases.ts';
import { createFileReader } from '../../../runtime/files/file-reader.ts';
import { pauseFor, temporaryFolder, waitForClock } from '../../harness.ts';

const kept = suite('files in memory');
const base = realpathSync(temporaryFolder());
const root = path.join(base, 'site/public/root');
const outside = path.join(base, 'outside');

let reader: FileReader;

function open(name: string, from = root): OpenFile {
	return reader.open(from, `/${name}`, false) as OpenFile;
}

function bytesOf(file: OpenFile): Buffer {
	const body = file.body(0, file.size) as Uint8Array | BodySource;
	if (body instanceof Uint8Array) return Buffer.from(body);
	const bytes = Buffer.from(body.pull() as Uint8Array);
	assert.is(body.pull(), null);
	return bytes;
}

/** Returns the text of a file without leaving anything open. */
function text(name: string): string {
	return bytesOf(open(name)).toString();
}

/** Opens a file often enough that it is cached. Returns the cached file. */
function openUntilCached(name: string): OpenFile {
	for (let times = 0; times < 4; times++) open(name).close();
	return open(name);
}

function isKept(name: string): boolean {
	const [one, two] = [open(name), open(name)];
	one.close();
	two.close();
	return one === two;
}

function descriptors(): number {
	return readdirSync('/proc/self/fd').length;
}

function reason(name: string): string | undefined {
	try {
		open(name).close();
		return undefined;
	} catch (error) {
		return (error as FileError).reason;
	}
}

kept.before(async () => {
	for (const folder of ['root/deep/er', 'root/folder', 'root/many']) {
		mkdirSync(path.join(path.dirname(root), folder), { recursive: true });
	}
	mkdirSync(outside);
	for (const name of ['a', 'replaced', 'rewritten', 'removed', 'modes', 'deep/er/a', 'folder/secret', 'same-size']) {
		writeFileSync(path.join(root, name), 'before');
	}
	for (const name of ['large', 'large-changed', 'large-replaced']) {
		writeFileSync(path.join(root, name), Buffer.alloc(200_000, 'x'));
	}
	mkdirSync(path.join(root, 'large-ones'));
	for (let index = 0; index < 300; index++)
		writeFileSync(path.join(root, 'large-ones', String(index)), Buffer.alloc(65_537));
	mkdirSync(path.join(base, 'releases/7/public'), { recursive: true });
	mkdirSync(path.join(base, 'releases/8/public'), { recursive: true });
	writeFileSync(path.join(base, 'releases/7/public/page'), 'seven');
	writeFileSync(path.join(base, 'releases/8/public/page'), 'eight');
	symlinkSync('releases/7', path.join(base, 'current'));
	for (let index = 0; index < 300; index++) {
		writeFileSync(path.join(root, 'many', String(index)), Buffer.alloc(65_000, index));
	}
	writeFileSync(path.join(outside, 'secret'), 'secret');
	symlinkSync('a', path.join(root, 'link'));
	writeFileSync(path.join(outside, 'shared'), 'before');
	linkSync(path.join(outside, 'shared'), path.join(root, 'shared'));
	// For two seconds after a file's last change, the server assumes that the file is still changing, and does not cache it.
	await waitForClock(2100);
});

kept.before.each(() => {
	reader = createFileReader();
});

kept('a cached file is neither opened nor read again', () => {
	assert.not(isKept('a'));
	openUntilCached('a');
	assert.ok(isKept('a'));
	assert.is(text('a'), 'before');
	assert.equal([...(open('a').body(1, 3) as Uint8Array)], [...Buffer.from('ef')]);
	assert.is(open('a').relativePath, '/a');
	// With another root, the same file has another path below the root.
	assert.is(open('root/a', path.dirname(root)).relativePath, '/root/a');
});

kept('recently changed files, and files behind a symbolic link, are not cached', () => {
	writeFileSync(path.join(root, 'fresh'), 'fresh');
	// A changed file is not cached sooner if its mtime is set back, because its ctime is not.
	utimesSync(path.join(root, 'fresh'), 1, 1);
	for (const name of ['fresh', 'link']) {
		openUntilCached(name).close();
		assert.not(isKept(name), name);
	}
});

kept('a large file is kept open, and closed when it changes', async () => {
	const before = descriptors();
	for (const name of ['large', 'large-changed', 'large-replaced']) {
		openUntilCached(name);
		assert.ok(isKept(name), name);
	}
	assert.is(descriptors() - before, 3);
	const replaced = open('large-replaced');
	// If a file is overwritten in place, the change takes effect immediately, because the bytes are sent directly from the file.
	writeFileSync(path.join(root, 'large-changed'), Buffer.alloc(200_001, 'y'));
	const changed = open('large-changed');
	assert.is(changed.size, 200_001);
	changed.close();
	const body = replaced.body(0, replaced.size) as BodySource;
	writeFileSync(path.join(root, 'new'), Buffer.alloc(100_000, 'z'));
	renameSync(path.join(root, 'new'), path.join(root, 'large-replaced'));
	await pauseFor(50);
	const after = open('large-replaced');
	assert.is(after.size, 100_000);
	after.close();
	// A response that is in progress continues with the old file.
	assert.is(Buffer.from((await body.pull())!)[0], 'x'.charCodeAt(0));
	body.cancel();
	assert.is(descriptors() - before, 1);
});

kept('the number of open descriptors is limited', () => {
	const before = descriptors();
	for (let times = 0; times < 3; times++) {
		for (let index = 0; index < 300; index++) open(`large-ones/${index}`).close();
	}
	const held = descriptors() - before;
	assert.ok(held > 100 && held <= 256, `${held} held open`);
});

kept('files below a root that is a symbolic link are cached, and the link may be changed at any time', async () => {
	const current = path.join(base, 'current/public');
	const page = (): OpenFile => open('page', current);
	for (let times = 0; times < 4; times++) page().close();
	assert.is(page(), page());
	assert.is(bytesOf(page()).toString(), 'seven');
	assert.is(page().relativePath, '/page');
	assert.is(page().path, path.join(base, 'releases/7/public/page'));
	symlinkSync('releases/8', path.join(base, 'next'));
	renameSync(path.join(base, 'next'), path.join(base, 'current'));
	await pauseFor(50);
	assert.is(bytesOf(page()).toString(), 'eight');
});

kept('a change takes effect at once', async () => {
	const names = ['replaced', 'rewritten', 'removed', 'modes', 'same-size'];
	for (const name of names) openUntilCached(name);
	for (const name of names) assert.ok(isKept(name), name);
	writeFileSync(path.join(root, 'new'), 'after it');
	renameSync(path.join(root, 'new'), path.join(root, 'replaced'));
	writeFileSync(path.join(root, 'rewritten'), 'after it');
	writeFileSync(path.join(root, 'same-size'), 'behind');
	rmSync(path.join(root, 'removed'));
	chmodSync(path.join(root, 'modes'), 0);
	await pauseFor(50);
	assert.is(text('replaced'), 'after it');
	assert.is(text('rewritten'), 'after it');
	assert.is(text('same-size'), 'behind');
	assert.is(reason('removed'), 'not_found');
	// Root may read everything. The server finds this out only by opening the file again, so it does not keep the file open.
	assert.not(isKept('modes'));
});

kept('a folder replaced by a symbolic link does not lead outside the root', async () => {
	openUntilCached('folder/secret');
	assert.ok(isKept('folder/secret'));
	renameSync(path.join(root, 'folder'), path.join(root, 'was-folder'));
	symlinkSync(outside, path.join(root, 'folder'));
	await pauseFor(50);
	assert.is(reason('folder/secret'), 'not_found');
});

kept('memory is limited, and every file has the right content whatever is evicted', () => {
	for (let times = 0; times < 4; times++) {
		for (let index = 0; index < 300; index++) {
			const file = open(`many/${index}`);
			const bytes = bytesOf(file);
			assert.is(bytes.byteLength, 65_000);
			assert.is(bytes[64_999], index & 255);
		}
	}
	let found = 0;
	for (let index = 0; index < 300; index++) {
		const one = reader.open(root, `/many/${index}`, false) as OpenFile;
		if ('bytes' in one) found += 1;
		one.close();
	}
	assert.ok(found <= 258, `${found} kept`);
});

kept('popular files stay cached, however many others are requested', () => {
	const hot = Array.from({ length: 10 }, (_, index) => `many/${index}`);
	for (let times = 0; times < 20; times++) for (const name of hot) open(name).close();
	for (let round = 0; round < 3; round++) {
		for (let index = 10; index < 300; index++) {
			const name = `many/${index}`;
			assert.is(bytesOf(open(name))[64_999], index & 255);
		}
		for (const name of hot) assert.ok(isKept(name), `${name} in round ${round}`);
	}
});

kept('newly popular files replace formerly popular ones', () => {
	for (let times = 0; times < 3; times++) for (let index = 0; index < 300; index++) open(`many/${index}`).close();
	const late = Array.from({ length: 10 }, (_, index) => `many/${index + 280}`);
	for (let times = 0; times < 30; times++) for (const name of late) open(name).close();
	for (const name of late) assert.ok(isKept(name), name);
});

kept('changes that no watch reports take effect within a second', async () => {
	openUntilCached('deep/er/a');
	assert.ok(isKept('deep/er/a'));
	openUntilCached('shared');
	assert.ok(isKept('shared'));
	// The file is changed through its other hard link, which is in a folder without a watch.
	writeFileSync(path.join(outside, 'shared'), 'behind');
	// The folder that contains the root's parent has no watch.
	renameSync(path.join(base, 'site'), path.join(base, 'moved'));
	await waitForClock(1050);
	assert.is(reason('deep/er/a'), 'not_found');
	renameSync(path.join(base, 'moved'), path.join(base, 'site'));
	assert.is(text('deep/er/a'), 'before');
	assert.is(text('shared'), 'behind');
});

kept.run();
