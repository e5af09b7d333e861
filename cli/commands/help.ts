/**
 * The command `svc help`: prints the help of a command (like `--help`), a guide, a reference entry, or the section of a guide
 * that a search finds.
 */
import { quoteWord, UnknownWord } from '../command/arguments.ts';
import { type Command, CommandFailure, EXIT_STATUS } from '../command/command.ts';
import { commandHelp, commandList } from '../command/help.ts';
import { print, shouldColorStandardOutput } from '../command/terminal.ts';
import type { Guide } from '../manual/guide.ts';
import type { FoundSection } from '../manual/guide-search.ts';
import { TOPICS } from '../manual/topics.ts';
import { findCommand } from './find-command.ts';
import { COMMANDS } from './index.ts';

/** Number of further sections that a search names, besides the one that it prints. */
const MAX_FURTHER_RESULTS = 5;

/** Maximum width of guides in columns, even on a wider terminal, because long lines are hard to read. */
const MAX_GUIDE_COLUMNS = 100;

export const help: Command = {
	name: 'help',
	summary: 'List the commands and guides, print the help of one, or search the guides',
	details: [
		'With the name of a directive, matcher or global option, prints its reference entry; with `options`, `matchers` or `placeholders`, lists all of them.',
		'Other words are searched for in the guides. The section that fits best is printed, followed by the names of others.',
	],
	args: [
		{
			name: 'TOPIC',
			offers: 'command-or-guide',
			repeatable: true,
			summary: `A command, such as ${quoteWord('run')}; a guide, such as ${quoteWord('https')}; a word of a configuration, such as ${quoteWord('redir')}; or words to search for`,
		},
	],
	options: [{ name: 'search', summary: 'Search the guides, even if the words name a command or a guide' }],
	async run({ args, flag }) {
		const topic = args.join(' ');
		const { allGuides, findGuide } = await import('../manual/guide.ts');
		if (flag('search')) {
			if (topic === '') throw new CommandFailure(`${quoteWord('--search')} needs words to search for.`);
			if (await printBestSection(allGuides(), topic)) return EXIT_STATUS.ok;
			throw new CommandFailure(
				`No guide has anything about ${quoteWord(topic)}. ${quoteWord('svc help')} lists all guides.`,
			);
		}
		if (topic === '') {
			print(commandList(COMMANDS, allGuides()));
			return EXIT_STATUS.ok;
		}
		const guide = findGuide(topic);
		const { moduleEntry, moduleNames } = await import('../manpages/module-entry.ts');
		const { referenceList, referenceListNames } = await import('../manpages/reference-lists.ts');
		const referenceEntry = moduleEntry(topic) ?? referenceList(topic);
		const commandNames = COMMANDS.map(command => command.name);
		const knownWords = [...commandNames, ...moduleNames(), ...referenceListNames()];
		if (guide) await printMarkdown(guide.text);
		else if (commandNames.includes(topic) || topic === 'lsp') {
			print(commandHelp(await findCommand(topic).load()));
			if (referenceEntry !== undefined) {
				print('\n');
				await printMarkdown(referenceEntry);
			}
		} else if (referenceEntry !== undefined) {
			await printMarkdown(referenceEntry);
			const { searchGuides } = await import('../manual/guide-search.ts');
			printSeeAlso(searchGuides(allGuides(), topic).slice(0, MAX_FURTHER_RESULTS));
		} else if (
			(args.length === 1 && (await isMisspelled(topic, knownWords))) ||
			!(await printBestSection(allGuides(), topic))
		) {
			const message = `${quoteWord(topic)} is not a command, a guide or a word of a configuration (${quoteWord('svc help')} lists commands and guides)`;
			throw new UnknownWord(message, topic, [...knownWords, ...TOPICS]);
		}
		return EXIT_STATUS.ok;
	},
};

/**
 * Reports whether a word closely resembles one of the names. Such a word is taken for a misspelling, not for a search.
 */
async function isMisspelled(word: string, names: readonly string[]): Promise<boolean> {
	const { nearestName } = await import('../../compiler/diagnostics/suggest.ts');
	return nearestName(word, names) !== undefined;
}

/** Searches the guides, prints the best section in full, and lists other results by name. Returns false if nothing was found. */
async function printBestSection(guides: readonly Guide[], words: string): Promise<boolean> {
	const { searchGuides } = await import('../manual/guide-search.ts');
	const [bestResult, ...otherResults] = searchGuides(guides, words);
	if (!bestResult) return false;
	const { guide, section } = bestResult;
	const isIntroduction = section === guide.sections[0];
	await printMarkdown(isIntroduction ? guide.text : `# ${guide.title}: ${section.title}\n\n${section.text}`);
	printSeeAlso(otherResults.slice(0, MAX_FURTHER_RESULTS), isIntroduction ? undefined : guide.topic);
	return true;
}

/** Prints "See also" and the sections. If `wholeGuide` names a guide, the list begins with that guide. */
function printSeeAlso(sections: readonly FoundSection[], wholeGuide?: string): void {
	const places = sections.map(({ guide, section }) => [guide.topic, section.title] as const);
	const rows = [...(wholeGuide === undefined ? [] : [[wholeGuide, 'the whole guide'] as const]), ...places];
	if (rows.length === 0) return;
	const width = Math.max(...rows.map(([topic]) => topic.length));
	print(`\nSee also:\n${rows.map(([topic, title]) => `  svc help ${topic.padEnd(width)}  ${title}\n`).join('')}`);
}

async function printMarkdown(text: string): Promise<void> {
	const { renderForTerminal } = await import('../manual/terminal-markdown.ts');
	const width = Math.min(process.stdout.columns || MAX_GUIDE_COLUMNS, MAX_GUIDE_COLUMNS);
	print(renderForTerminal(text, { width, usesStyles: shouldColorStandardOutput() }));
}
