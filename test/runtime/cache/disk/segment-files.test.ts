/** The files of the disk tier by themselves. */
import { renameSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { SegmentFiles } from '../../../../runtime/cache/disk/segment-files.ts';
import { temporaryFolder } from '../../../harness.ts';

const files = suite('segment files');

files('a segment that could not be opened once is read later', async () => {
	const folder = temporaryFolder();
	const first = new SegmentFiles(folder, 8 * 1024 * 1024, () => {});
	await first.list();
	await first.append([Buffer.from('hello')]);
	await first.close();
	const again = new SegmentFiles(folder, 8 * 1024 * 1024, () => {});
	await again.list();
	renameSync(path.join(folder, '1.segment'), path.join(folder, 'away'));
	assert.is(await again.read(1, 0, 5), undefined);
	renameSync(path.join(folder, 'away'), path.join(folder, '1.segment'));
	assert.is((await again.read(1, 0, 5))?.toString(), 'hello');
	await again.close();
});

files.run();
