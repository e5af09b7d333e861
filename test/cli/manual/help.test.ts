/** `svc help` prints guides and finds the section that answers a question. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { moduleEntry, moduleNames } from '../../../cli/manpages/module-entry.ts';
import { allGuides } from '../../../cli/manual/guide.ts';
import { searchGuides } from '../../../cli/manual/guide-search.ts';
import { renderForTerminal } from '../../../cli/manual/terminal-markdown.ts';
import { SHORTHANDS } from '../../../compiler/codegen/placeholders/shorthands.ts';
import { runCommand } from '../../harness.ts';
import { QUESTIONS } from './questions.ts';

const MARKDOWN = `# Title

A paragraph with \`some code\`, **strong** and
[a link](https://example.com/).

- one item that is long enough to be wrapped
- two

| Word | Meaning |
| --- | --- |
| \`a\\|b\` | one of the two |

\`\`\`configfile Configfile
:8080 {
	respond ok
}
\`\`\`
`;

const help = suite('svc help');

help('renders Markdown as plain text', () => {
	assert.is(
		renderForTerminal(MARKDOWN, { width: 30, usesStyles: false }),
		`Title

A paragraph with \`some code\`,
strong and a link
(https://example.com/).

- one item that is long enough
  to be wrapped
- two

Word   Meaning
-----  --------------
\`a|b\`  one of the two

    Configfile:
    :8080 {
        respond ok
    }
`,
	);
});

help('renders Markdown with styles on a terminal', () => {
	const text = renderForTerminal(MARKDOWN, { width: 60, usesStyles: true });
	assert.ok(text.startsWith('\x1b[1mTitle\x1b[22m\n'));
	assert.ok(text.includes('with \x1b[36msome code\x1b[39m, strong'));
	assert.ok(!text.includes('`'));
});

help('prints a guide', async () => {
	const { status, stdout, stderr } = await runCommand(['help', 'https']);
	assert.is(status, 0);
	assert.is(stderr, '');
	assert.ok(stdout.startsWith('HTTPS\n\n'));
});

help('prints the section that answers a question, and names the guide', async () => {
	const { status, stdout } = await runCommand(['help', 'sticky', 'sessions']);
	assert.is(status, 0);
	assert.match(stdout, /^Proxying: Sticky sessions\n\n/);
	assert.match(stdout, /\nSee also:\n {2}svc help proxying +the whole guide\n/);
});

help('prints the reference entry of a word of a configuration', async () => {
	const directive = await runCommand(['help', 'file_server']);
	assert.is(directive.status, 0);
	assert.match(directive.stdout, /^file_server \(directive\)\n\nServes static files\.\n/);
	assert.match(directive.stdout, /\nSee also:\n {2}svc help /);
	// One word may name modules of several kinds.
	const { stdout } = await runCommand(['help', 'header']);
	assert.match(stdout, /^header \(directive\)\n/);
	assert.match(stdout, /^header \(matcher\)\n/m);
	const command = await runCommand(['help', 'respond']);
	assert.match(command.stdout, /^Serve one fixed response\.\n/);
	assert.match(command.stdout, /^respond \(directive\)\n/m);
	const misspelled = await runCommand(['help', 'revers_proxy']);
	assert.is(misspelled.status, 1);
	assert.match(misspelled.stderr, 'did you mean `reverse_proxy`?');
});

help('lists global options, matchers and placeholders', async () => {
	const listOf = async (...words: string[]): Promise<string> => (await runCommand(['help', ...words])).stdout;
	assert.match(await listOf('global', 'options'), /^Global options\n[\s\S]*\n`http_port` +Sets the port/);
	assert.match(await listOf('matchers'), /^Matchers\n[\s\S]*\n`path_regexp` +\S/);
	const placeholderList = await listOf('placeholders');
	const missing = Object.keys(SHORTHANDS).filter(name => !placeholderList.includes(`\n\`{${name}}\` `));
	assert.equal(missing, []);
});

help('the rows of each table in the reference have as many cells as its header', () => {
	const wrong: string[] = [];
	for (const name of moduleNames()) {
		const tables = moduleEntry(name)!.matchAll(/(?:^\|.*\n?)+/gm);
		for (const [table] of tables) {
			const counts = table
				.trimEnd()
				.split('\n')
				.map(row => row.split(/(?<!\\)\|/).length);
			const odd = counts.findIndex(count => count !== counts[0]);
			if (odd !== -1) wrong.push(`${name}: ${table.split('\n')[odd]}`);
		}
	}
	assert.equal(wrong, []);
});

help('searches for a word that is a command if told to', async () => {
	const { status, stdout } = await runCommand(['help', '--search', 'trust']);
	assert.is(status, 0);
	assert.not.match(stdout, /^Usage:/m);
});

help('refuses words that nothing is known about', async () => {
	const unknown = await runCommand(['help', 'frobnicate']);
	assert.is(unknown.status, 1);
	assert.is(
		unknown.stderr,
		'error: `frobnicate` is not a command, a guide or a word of a configuration (`svc help` lists commands and guides).\n',
	);
	const misspelled = await runCommand(['help', 'validat']);
	assert.is(
		misspelled.stderr,
		'error: `validat` is not a command, a guide or a word of a configuration (`svc help` lists commands and guides); did you mean `validate`?\n',
	);
	const searched = await runCommand(['help', '--search', 'frobnicate']);
	assert.is(searched.stderr, 'error: No guide has anything about `frobnicate`. `svc help` lists all guides.\n');
	assert.is((await runCommand(['help', '--search'])).stderr, 'error: `--search` needs words to search for.\n');
});

help('answers the questions of new users with the first result', () => {
	const guides = allGuides();
	const wrong = QUESTIONS.flatMap(([question, topic, title]) => {
		const [best] = searchGuides(guides, question);
		return best?.guide.topic === topic && best.section.title === title
			? []
			: [`${question}: ${best?.guide.topic}, ${best?.section.title}`];
	});
	assert.equal(wrong, []);
});

help.run();
