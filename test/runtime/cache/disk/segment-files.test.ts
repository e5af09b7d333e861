/** The segment files of the disk tier, without the rest of the tier. */
import { renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { SegmentFiles } from '../../../../runtime/cache/disk/segment-files.ts';
import { temporaryFolder } from '../../../harness.ts';

const files = suite('segment files');

files('a segment that failed to open once can be read later', async () => {
	const folder = temporaryFolder();
	const first = new SegmentFiles(folder, 8 * 1024 * 1024, () => {});
	await first.listSegments();
	await first.appendPieces([Buffer.from('hello')]);
	await first.close();
	const again = new SegmentFiles(folder, 8 * 1024 * 1024, () => {});
	await again.listSegments();
	renameSync(path.join(folder, '1.segment'), path.join(folder, 'away'));
	assert.is(await again.read(1, 0, 5), undefined);
	renameSync(path.join(folder, 'away'), path.join(folder, '1.segment'));
	assert.is((await again.read(1, 0, 5))?.toString(), 'hello');
	await again.close();
});

files('the number of open segments is limited', async () => {
	const folder = temporaryFolder();
	for (let id = 1; id <= 200; id++) writeFileSync(path.join(folder, `${id}.segment`), `segment ${id}`);
	const many = new SegmentFiles(folder, 8 * 1024 * 1024, () => {});
	const all = await many.listSegments();
	for (let round = 0; round < 3; round++) {
		const read = await Promise.all(all.map(id => many.read(id, 0, 9)));
		assert.ok(read.every((bytes, i) => bytes?.toString() === `segment ${i + 1}`.slice(0, 9)));
		for (let id = 200; id > 0; id -= 7) await many.read(id, 0, 1);
		assert.ok(many.openFileCount <= 33, String(many.openFileCount));
	}
	await many.close();
});

files.run();
