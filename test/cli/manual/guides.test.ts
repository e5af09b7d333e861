/**
 * The guides are correct: every configuration in them is valid, and every command prints what the guide shows. A configuration
 * that a command of its guide names is checked only by this command, because the guide may show a mistake on purpose.
 */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { COMMANDS } from '../../../cli/commands/index.ts';
import { validateConfiguration } from '../../../cli/configuration/validation.ts';
import { allGuides } from '../../../cli/manual/guide.ts';
import { TOPICS } from '../../../cli/manual/topics.ts';
import { BLOCK_LANGUAGES, type CodeBlock, executeBlocks, readBlocks } from '../../executed-document.ts';
import { ROOT, temporaryFolder } from '../../harness.ts';

/** Number of guides whose commands run at the same time. Most of the time is spent waiting for processes to start. */
const CONCURRENT_GUIDES = 3;

const GUIDES_FOLDER = 'cli/manual';

// Variables from which the guides take secrets.
for (const name of ['BACKEND_TOKEN', 'CLOUDFLARE_TOKEN', 'COOKIE_SECRET', 'ADMIN_TOKEN', 'REDIS_PASSWORD']) {
	process.env[name] = 'secret-of-a-guide';
}
process.env.CLUSTER_KEY = Buffer.alloc(32).toString('base64');

const guides = suite('guides');

guides('every file is a topic, and no topic is a command', () => {
	const files = readdirSync(path.join(ROOT, GUIDES_FOLDER)).filter(name => name.endsWith('.md'));
	assert.equal(files.sort(), TOPICS.map(topic => `${topic}.md`).sort());
	assert.equal(
		COMMANDS.filter(({ name }) => TOPICS.some(topic => topic === name)).map(({ name }) => name),
		[],
	);
});

guides('every guide has a title, a summary of one sentence, and 300 to 900 words', () => {
	const wrong: string[] = [];
	for (const { topic, title, summary, sections, text } of allGuides()) {
		const words = text.split(/\s+/).length;
		// Lines with measurements and bars are not counted, because readers look figures up instead of reading all of them.
		const figures = (text.match(/^\|(?: [\w ]+ \|)* [\d.,]+ \|.*$|^.*█.*$/gm) ?? []).join(' ').split(/\s+/).length;
		if (words < 300 || words - figures > 900) wrong.push(`${topic}: ${words} words`);
		if (title === '' || summary === '' || summary.length > 130) wrong.push(`${topic}: title or summary`);
		if (sections.some(section => section.title === '' || section.text === '')) wrong.push(`${topic}: an empty section`);
		if (text.includes('<!--')) wrong.push(`${topic}: a comment that is not a list of words`);
	}
	assert.equal(wrong, []);
});

const blocks = new Map<string, CodeBlock[]>(TOPICS.map(topic => [topic, readBlocks(`${GUIDES_FOLDER}/${topic}.md`)]));

/** Reports whether a command of the guide uses the configuration file, by name or by default. */
function isUsedByCommand({ file }: CodeBlock, all: readonly CodeBlock[]): boolean {
	const commands = all.filter(({ language }) => language === 'console').map(({ text }) => text);
	return commands.some(text =>
		file === 'Configfile' || file === 'Caddyfile'
			? /^\$ svc (run|validate)( &)?$/m.test(text)
			: text.includes(` ${file}`),
	);
}

guides('every configuration is valid, and its tests pass', async () => {
	const wrong: string[] = [];
	let count = 0;
	const before = process.cwd();
	for (const [topic, all] of blocks) {
		const folder = temporaryFolder();
		process.chdir(folder);
		for (const { file, text } of all) {
			if (file === undefined) continue;
			mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
			writeFileSync(path.join(folder, file), text);
		}
		for (const block of all) {
			const { language, line, text, file = `line-${line}.conf` } = block;
			if (!BLOCK_LANGUAGES.has(language)) wrong.push(`${topic}.md:${line}: unknown language ${language}`);
			if (language !== 'configfile' && language !== 'caddyfile') continue;
			if (block.file !== undefined && isUsedByCommand(block, all)) continue;
			count++;
			const format = language === 'caddyfile' ? 'compatfile' : 'configfile';
			const input = { format, text, name: file, path: path.join(folder, file) } as const;
			const { valid, diagnostics } = await validateConfiguration(input, { lint: false, strict: false });
			// The folders of examples exist on the reader's machine only.
			const findings = diagnostics.filter(({ code }) => code !== 'files/root-missing');
			if (!valid || findings.length > 0) {
				wrong.push(`${topic}.md:${line}: ${findings.map(({ message }) => message).join(' ')}`);
			}
		}
	}
	process.chdir(before);
	assert.equal(wrong, []);
	assert.ok(count > 0);
});

// Each guide has its own folder and ports, so that several guides can run at the same time.
const lanes: Promise<void>[] = Array.from({ length: CONCURRENT_GUIDES }, () => Promise.resolve());
for (const [index, [topic, all]] of [...blocks].entries()) {
	const execution = lanes[index % CONCURRENT_GUIDES]!.then(() => executeBlocks(`${GUIDES_FOLDER}/${topic}.md`, all));
	lanes[index % CONCURRENT_GUIDES] = execution.catch(() => {});
	guides(`the commands of ${topic} print what it shows`, () => execution);
}

guides.run();
