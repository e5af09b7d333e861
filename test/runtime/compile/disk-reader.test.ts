/** The compiler's file reader on real files: files that could block forever are not read. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compile } from '../../../compiler/compiler.ts';
import { diskReader } from '../../../runtime/compile/disk-reader.ts';
import { temporaryFolder } from '../../harness.ts';

const folder = temporaryFolder();
execFileSync('mkfifo', [path.join(folder, 'pipe')]);
mkdirSync(path.join(folder, 'sites'));
writeFileSync(path.join(folder, 'sites/one'), ':8081 {\n\trespond one\n}\n');
execFileSync('mkfifo', [path.join(folder, 'sites/two')]);

function codes(text: string): string[] {
	const input = { format: 'configfile' as const, text, name: 'Configfile', path: path.join(folder, 'Configfile') };
	return compile(input, diskReader(folder)).diagnostics.map(({ code }) => code);
}

const reading = suite('disk reader');

reading('importing a pipe or device is an error, and a glob skips them', () => {
	assert.equal(codes('import pipe\n:8080 {\n\trespond ok\n}\n'), ['import/not-a-file']);
	assert.equal(codes('import /dev/zero\n:8080 {\n\trespond ok\n}\n'), ['import/not-a-file']);
	assert.equal(codes('import sites/*\n:8080 {\n\trespond ok\n}\n'), []);
});

reading('certificates, keys and text are read from regular files only', () => {
	assert.throws(
		() => diskReader(folder).readText('pipe'),
		(error: { code?: string }) => error.code === 'EINVAL',
	);
	assert.throws(
		() => diskReader(folder).readText('sites'),
		(error: { code?: string }) => error.code === 'EISDIR',
	);
	assert.throws(
		() => diskReader(folder).readBytes('pipe'),
		(error: { code?: string }) => error.code === 'EINVAL',
	);
	assert.is(diskReader(folder).readBytes('sites/one').length, 23);
});

reading.run();
