/** The README is correct: every code block in it is executed. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { BLOCK_LANGUAGES, executeBlocks, readBlocks } from './executed-document.ts';

const readme = suite('README');
const blocks = readBlocks('README.md');

readme('has blocks to execute', () => {
	assert.ok(blocks.some(block => block.language === 'console'));
	assert.equal(
		blocks
			.filter(block => !BLOCK_LANGUAGES.has(block.language))
			.map(block => `README.md:${block.line}: ${block.language}`),
		[],
	);
});

readme('every block prints what the README shows', async () => {
	await executeBlocks('README.md', blocks);
});

readme.run();
