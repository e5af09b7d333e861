/** The README is correct: every code block in it is executed. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { TOPICS } from '../cli/manual/topics.ts';
import { BLOCK_LANGUAGES, executeBlocks, readBlocks } from './executed-document.ts';
import { ROOT } from './harness.ts';

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

readme('is shorter than 900 words, and names each file above its block', () => {
	const text = readFileSync(path.join(ROOT, 'README.md'), 'utf8');
	const words = text.split(/\s+/).length;
	assert.ok(words < 900, `${words} words`);
	for (const [, name] of text.matchAll(/^```configfile (\S+)$/gm)) {
		assert.match(text, `**\`${name}\`**`);
		assert.ok(text.indexOf(`**\`${name}\`**`) < text.indexOf(`\`\`\`configfile ${name}`), name);
	}
});

readme('every link leads to a file', () => {
	const text = readFileSync(path.join(ROOT, 'README.md'), 'utf8');
	const targets = [...text.matchAll(/\]\(([^)#]+)\)/g)].map(([, target]) => target!);
	assert.ok(targets.length > 20);
	assert.equal(
		targets.filter(target => !existsSync(path.join(ROOT, target))),
		[],
	);
	for (const topic of TOPICS) assert.match(text, `(cli/manual/${topic}.md)`);
});

readme('every block prints what the README shows', async () => {
	await executeBlocks('README.md', blocks);
});

readme.run();
