/** Writes the text of a Compatfile as that of a Configfile, by the steps to which the Compatfile compiles. */
import { nameCompatiblePlaceholders } from '../codegen/placeholders/shorthands.ts';
import { registryOf } from '../lower/registry.ts';
import { COMPATIBLE_FALLBACK_POLICY } from '../modules/matchers/file.ts';
import type { ParsedBlock, ParsedLine, ParsedWord } from '../syntax/parsed-file.ts';
import { kindOfTopLevel, rangeOfLine, type TextRange, type TextSyntax } from './text-syntax.ts';

/** A step in the document to which the Compatfile compiles. */
export interface LoweredStep {
	readonly pointer: string;
	/** Offsets in the converted file: of the line from which the step was lowered, and of the imports that lead to that line. */
	readonly places: readonly number[];
	/** True if the step itself has no condition, and is directly in a group that has one. */
	readonly sharesCondition: boolean;
}

/** A line of a block, together with the comments above it and the matcher definitions before it, which move with it. */
interface LinePiece {
	/** The position of the line in the Compatfile's block. */
	readonly index: number;
	/** The number of the line's paragraph. Empty lines separate paragraphs. */
	readonly paragraph: number;
	/** The text between the line before and this line: newlines and comments. */
	readonly before: string;
	/** The converted line, with the comment after it. */
	readonly text: string;
	/** The line as written. */
	readonly line: ParsedLine;
	/** The number of the first step that is lowered from the line; undefined if no step is. */
	readonly stepNumber: number | undefined;
	/** Set if the line is a part of a condition that several lines share. */
	readonly group: PieceGroup | undefined;
	/** The definitions of matchers that are written before the line because it is the first to use one of them. */
	readonly definitions: LinePiece[];
}

/** Describes how adjacent lines become one `route` or one `when … else …`. */
interface PieceGroup {
	/** The JSON pointer of the step that has the condition of the `route`, or the branches of the `when`. */
	readonly pointer: string;
	/** The number of the branch of a `when`; undefined for a `route`. */
	readonly branch: string | undefined;
	/** The matcher token of the line; undefined if it has none. */
	readonly matcher: string | undefined;
	/** The line's text without the matcher token. */
	readonly text: string;
}

/** The lines of a block, and where the tokens around them are. */
interface BlockRange {
	readonly open: TextRange;
	readonly close: TextRange;
	readonly lines: readonly ParsedLine[];
}

/** What the lines of a block are. */
type BlockContent = 'directives' | 'options' | 'php_fastcgi' | 'other';

const OLD_ARGUMENT = /(?<!\\)\{args\.(\d+)\}/g;

/** Sub-directives whose argument is a policy of the matcher `file`. */
const POLICY_LINES: ReadonlySet<string> = new Set(['policy', 'try_policy']);

/** Sub-directives of `reverse_proxy` that only a Compatfile has, with their words in a Configfile. */
const OLD_SUBDIRECTIVES: ReadonlyMap<string, string> = new Map([
	['health_path', 'health_uri'],
	['tls_trusted_ca_certs', 'tls_trust_pool file'],
	['forward_proxy_url', 'network_proxy url'],
]);

const COMPATFILE = registryOf('compatfile');
const CURRENT_NAMES = registryOf('configfile').oldSpellings;

/**
 * Returns the text of a Configfile. It is not formatted, and does not necessarily mean the same as the Compatfile. If
 * `groupsConditions` is true, adjacent directives whose matchers are equal become one `route`.
 */
export function writeConfigfile(syntax: TextSyntax, steps: readonly LoweredStep[], groupsConditions: boolean): string {
	return new ConfigfileWriter(syntax, steps, groupsConditions).convertText();
}

class ConfigfileWriter {
	readonly #syntax: TextSyntax;
	readonly #steps: readonly LoweredStep[];
	readonly #groupsConditions: boolean;

	constructor(syntax: TextSyntax, steps: readonly LoweredStep[], groupsConditions: boolean) {
		this.#syntax = syntax;
		this.#steps = steps;
		this.#groupsConditions = groupsConditions;
	}

	convertText(): string {
		const { text, lines } = this.#syntax;
		let convertedText = '';
		let position = 0;
		for (const [index, line] of lines.entries()) {
			const { start, end } = rangeOfLine(line);
			const kind = kindOfTopLevel(line, 'compatfile', COMPATFILE.directives);
			const isDirective = kind === 'directive';
			const content = kind === 'options' ? 'options' : isDirective ? contentOf(line) : 'directives';
			convertedText +=
				text.slice(position, start) + this.#convertLine(line, isDirective ? 'directives' : 'other', content);
			position = end;
			if (line.block || kind !== 'site') continue;
			// A site without braces extends to the end of the file.
			const open = { start: end, end };
			const close = { start: text.length, end: text.length };
			return convertedText + this.#convertBlock({ open, close, lines: lines.slice(index + 1) }, 'directives');
		}
		return convertedText + text.slice(position);
	}

	/** Returns the converted text of a line with its block. `parent` is what the line is, `content` what the lines in its block are. */
	#convertLine(line: ParsedLine, parent: BlockContent, content: BlockContent): string {
		const { text } = this.#syntax;
		const { start, end } = rangeOfLine(line);
		const { block } = line;
		const addedText = line.words[0]?.text === 'php_fastcgi' ? policyOfScripts(block) : '';
		if (!block) {
			const lineText = this.#convertWords(line, parent, text.slice(start, end));
			return addedText === '' ? lineText : `${lineText} {\n${addedText}}`;
		}
		const headText = this.#convertWords(line, parent, text.slice(start, block.open.end));
		return `${headText}${this.#convertBlock(block, content)}${addedText}${text.slice(block.close.start, end)}`;
	}

	/**
	 * Returns the text of a line's words with current names. A name with another meaning in a Configfile is replaced by the name for
	 * its meaning in the Compatfile. An expression becomes a single quoted argument.
	 * `file` without arguments becomes `file {path}`.
	 */
	#convertWords(line: ParsedLine, parent: BlockContent, writtenText: string): string {
		const text = nameCompatiblePlaceholders(this.#convertNames(line, parent, writtenText));
		return POLICY_LINES.has(line.words[0]?.text ?? '') && line.words[1]?.text === 'first_exist_fallback'
			? text.replace('first_exist_fallback', COMPATIBLE_FALLBACK_POLICY)
			: text;
	}

	#convertNames({ words, block }: ParsedLine, parent: BlockContent, text: string): string {
		const [firstWord] = words;
		if (!firstWord) return text;
		const keywordIndex = words.findIndex(({ text }, index) => index > 2 || !/^(?:@.*|not|lb_retry_match)$/.test(text));
		const expression = words[keywordIndex + 1];
		const lastWord = words.at(-1);
		const { start } = firstWord.span;
		if (words[keywordIndex]?.text === 'expression' && expression && lastWord && expression.quote === 'none') {
			const expressionText = text.slice(expression.span.start - start, lastWord.span.end - start);
			if (!expressionText.includes('`'))
				return `${text.slice(0, expression.span.start - start)}\`${expressionText}\`${text.slice(lastWord.span.end - start)}`;
		}
		if (words[keywordIndex]?.text === 'file' && words[keywordIndex] === lastWord && !namesFiles(block)) {
			const end = lastWord.span.end - start;
			return `${text.slice(0, end)} {path}${text.slice(end)}`;
		}
		const currentName = firstWord.quote === 'none' ? currentNameOf(firstWord.text, parent) : firstWord.text;
		const nameEnd = firstWord.span.end - start;
		const name = currentName === firstWord.text ? text.slice(0, nameEnd) : currentName;
		const matcherWord = parent === 'directives' ? matcherTokenOf(words) : undefined;
		const isSuperfluous =
			matcherWord?.text === '*' && ((words.length === 3 && isSoleTarget(words[0]!)) || !isMatcherToken(words[2]));
		const restText = isSuperfluous
			? text.slice(matcherWord.span.end - start)
			: matcherWord && matcherWord.quote !== 'none'
				? ` ${matcherWord.text}${text.slice(matcherWord.span.end - start)}`
				: text.slice(nameEnd);
		return (name + restText).replaceAll(OLD_ARGUMENT, '{args[$1]}');
	}

	/** Returns the content of a block in the order in which its steps run. */
	#convertBlock({ open, close, lines }: BlockRange, content: BlockContent): string {
		const { text } = this.#syntax;
		const pieces: LinePiece[] = [];
		// A comment beside the opening brace belongs to the block, not to the first line in it.
		const openComment = /^[ \t]*#.*/.exec(text.slice(open.end, close.start))?.[0] ?? '';
		let position = open.end + openComment.length;
		let paragraph = 0;
		for (const [index, line] of lines.entries()) {
			const { start, end } = rangeOfLine(line);
			const newline = text.indexOf('\n', end);
			const lineEnd = newline === -1 || newline > close.start ? end : newline;
			const before = text.slice(position, start);
			if (index > 0 && EMPTY_LINE.test(before)) paragraph++;
			// A Configfile has no `order` option, because its directives run in the order in which they are written.
			const isOrder = content === 'options' && line.words[0]?.text === 'order';
			const lineText = isOrder ? '' : this.#convertLine(line, content, contentOf(line));
			const stepNumber = this.#steps.findIndex(step => isFrom(step, line));
			const comment = text.slice(end, lineEnd);
			pieces.push({
				index,
				paragraph,
				before,
				text: lineText + comment,
				line,
				stepNumber: stepNumber === -1 ? undefined : stepNumber,
				group: this.#groupOf(line, lines, lineText, comment),
				definitions: [],
			});
			position = lineEnd;
		}
		return openComment + joinPieces(orderPieces(pieces)) + text.slice(position, close.start);
	}

	#groupOf(
		line: ParsedLine,
		siblings: readonly ParsedLine[],
		lineText: string,
		comment: string,
	): PieceGroup | undefined {
		const { words } = line;
		const matcherWord = matcherTokenOf(words);
		const matcher = matcherWord?.text === '*' ? undefined : matcherWord?.text;
		const text = (matcher === undefined ? lineText : lineText.replace(` ${matcher}`, '')) + comment;
		const name = words[0]?.text ?? '';
		const module = COMPATFILE.directives.get(name);
		if (module?.kind === 'handler' && module.exclusive !== undefined) {
			for (const { pointer } of this.#steps.filter(step => isFrom(step, line))) {
				const [, groupPointer, branch] = /^(.*)\/branches\/(\d+)(?:\/pipeline\/\d+)?$/.exec(pointer) ?? [];
				const groupStep = this.#steps.find(step => step.pointer === groupPointer);
				const isGroup = siblings.some(
					({ words }, i) => words[0]?.text === name && groupStep && isFrom(groupStep, siblings[i]!),
				);
				if (isGroup) return { pointer: groupPointer!, branch, matcher, text };
			}
		}
		const innerStep =
			this.#groupsConditions && matcher !== undefined
				? this.#steps.find(step => step.sharesCondition && isFrom(step, line))
				: undefined;
		return (
			innerStep && {
				pointer: innerStep.pointer.slice(0, innerStep.pointer.lastIndexOf('/pipeline/')),
				branch: undefined,
				matcher,
				text,
			}
		);
	}
}

/** Matches the text between two lines if it contains an empty line. */
const EMPTY_LINE = /\n[ \t\r]*\n/;

/** Reports whether a step is lowered from a line, or from what the line imports. */
function isFrom({ places }: LoweredStep, line: ParsedLine): boolean {
	const { start, end } = rangeOfLine(line);
	return places.some(place => place >= start && place < end);
}

/** Returns what the lines in the block of a directive or sub-directive are. */
function contentOf({ words }: ParsedLine): BlockContent {
	const name = words[0]?.text ?? '';
	if (name === 'php_fastcgi') return 'php_fastcgi';
	return name === 'handle_response' || COMPATFILE.directives.get(name)?.isBlock ? 'directives' : 'other';
}

/** Reports whether the block of a matcher `file` has files. Without any, it looks up the path, which a Configfile says explicitly. */
function namesFiles(block: ParsedBlock | undefined): boolean {
	return block?.lines.some(({ words }) => words[0]?.text === 'try_files') === true;
}

function isSubdirective(parent: BlockContent): boolean {
	return parent === 'php_fastcgi' || parent === 'other';
}

/** Returns the name of a directive or sub-directive in a Configfile. */
function currentNameOf(name: string, parent: BlockContent): string {
	if (parent === 'php_fastcgi' && name === 'root') return 'app_root';
	return (isSubdirective(parent) ? OLD_SUBDIRECTIVES.get(name) : CURRENT_NAMES.get(name)) ?? name;
}

/** Reports whether the only argument of a directive is never a matcher token. */
function isSoleTarget({ text }: ParsedWord): boolean {
	const module = COMPATFILE.directives.get(text);
	return module?.kind === 'handler' && module.matcherToken === 'with-more-arguments';
}

/** Reports whether a word would be the matcher token if it were the first argument, and the only one. */
function isMatcherToken(word: ParsedWord | undefined): boolean {
	return word !== undefined && word.quote === 'none' && /^[@/*]/.test(word.text);
}

/** Returns the matcher token of a directive's line in a Compatfile, where it can also be quoted. */
function matcherTokenOf(words: readonly ParsedWord[]): ParsedWord | undefined {
	const [name, word] = words;
	const module = name && COMPATFILE.directives.get(name.text);
	if (!word || module?.kind !== 'handler' || module.matcherToken === 'none') return undefined;
	if (module.matcherToken === 'with-more-arguments' && words.length < 3) return undefined;
	const canBeUnquoted = word.quote === 'none' || !/[\s"'`{}#]/.test(word.text);
	return canBeUnquoted && /^(?:[@/].*|\*)$/.test(word.text) ? word : undefined;
}

/**
 * Returns the pieces in the order in which their steps run. Lines without steps come first, except those at the end of the block.
 * The definitions of matchers come before the first line that uses them if they were next to a line that does.
 */
function orderPieces(pieces: readonly LinePiece[]): readonly LinePiece[] {
	const isDefinition = ({ line }: LinePiece): boolean => line.words[0]?.text.startsWith('@') === true;
	const isStep = ({ stepNumber }: LinePiece): boolean => stepNumber !== undefined;
	const firstStepIndex = pieces.findIndex(isStep);
	if (firstStepIndex === -1) return pieces;
	const lastStepIndex = pieces.findLastIndex(isStep);
	const rankOf = ({ index, stepNumber }: LinePiece): number =>
		stepNumber ?? (index > lastStepIndex ? Number.POSITIVE_INFINITY : -1);
	const sortedPieces = pieces.toSorted((one, other) =>
		rankOf(one) === rankOf(other) ? 0 : rankOf(one) - rankOf(other),
	);
	const movedDefinitions = new Set<LinePiece>();
	for (let index = 0; index < pieces.length; index++) {
		if (!isDefinition(pieces[index]!)) continue;
		let end = index + 1;
		while (pieces[end] && isDefinition(pieces[end]!)) end++;
		const definitions = pieces.slice(index, end);
		const nextPiece = pieces[end];
		// A block of definitions at the beginning stays there, unless it belongs to the next line.
		const belongsToNext = nextPiece !== undefined && definitions.some(definition => usesMatcher(nextPiece, definition));
		const units = belongsToNext
			? [definitions]
			: index < firstStepIndex
				? []
				: definitions.map(definition => [definition]);
		for (const unit of units) {
			const firstUser = sortedPieces.find(piece => unit.some(definition => usesMatcher(piece, definition)));
			if (!firstUser) continue;
			firstUser.definitions.push(...unit);
			for (const definition of unit) movedDefinitions.add(definition);
		}
		index = end - 1;
	}
	return sortedPieces.filter(piece => !movedDefinitions.has(piece));
}

function usesMatcher(piece: LinePiece, { line }: LinePiece): boolean {
	const name = line.words[0]!.text;
	if (piece.line.words[0]?.text.startsWith('@')) return false;
	return piece.text.split(/\s+/).includes(name);
}

/** A part of a block's text: a line with the definitions before it, or a group of lines. */
interface TextUnit {
	readonly before: string;
	readonly text: string;
	/** The positions of its first and last line in the Compatfile's block. */
	readonly firstIndex: number;
	readonly lastIndex: number;
	readonly paragraph: number;
	/** True if it is more than one line of text, so that an empty line sets it off from other paragraphs. */
	readonly isTall: boolean;
}

/** Joins the texts of lines. Adjacent lines of one group become a `route` or a `when … else …`. */
function joinPieces(pieces: readonly LinePiece[]): string {
	const units: TextUnit[] = [];
	for (let index = 0; index < pieces.length; ) {
		const { group } = pieces[index]!;
		let end = index + 1;
		while (group && pieces[end]?.group?.pointer === group.pointer) end++;
		const groupPieces = pieces.slice(index, end);
		const groupText = groupPieces.length === 1 ? undefined : textOfGroup(groupPieces);
		if (groupText === undefined) for (const piece of groupPieces) units.push(unitOf(piece));
		else
			units.push(
				withDefinitions(groupPieces, { ...unitOf(groupPieces[0]!), before: '\n', text: groupText, isTall: true }),
			);
		index = end;
	}
	return joinUnits(units);
}

function unitOf(piece: LinePiece): TextUnit {
	const { index, paragraph, before, text } = piece;
	const isTall = text.includes('\n');
	const unit: TextUnit = { before, text, firstIndex: index, lastIndex: index, paragraph, isTall };
	return withDefinitions([piece], unit);
}

/** Returns the unit of some lines with the definitions of the matchers that they use before it. */
function withDefinitions(pieces: readonly LinePiece[], unit: TextUnit): TextUnit {
	const definitions = pieces.flatMap(piece => piece.definitions);
	if (definitions.length === 0) return unit;
	const [firstUnit, ...otherUnits] = definitions.map(unitOf) as [TextUnit, ...TextUnit[]];
	const lastUnit = { ...unit, paragraph: definitions.at(-1)!.paragraph };
	const text = firstUnit.text + joinUnits([...otherUnits, lastUnit], firstUnit);
	return { ...firstUnit, text, lastIndex: unit.lastIndex, isTall: true };
}

function joinUnits(units: readonly TextUnit[], previousUnit?: TextUnit): string {
	return units.map((unit, i) => separatorBefore(unit, i === 0 ? previousUnit : units[i - 1]) + unit.text).join('');
}

/** Returns the newlines and comments between two units: as written, if they were next to each other. */
function separatorBefore(unit: TextUnit, previousUnit: TextUnit | undefined): string {
	const { before, firstIndex, paragraph } = unit;
	const isTall = unit.isTall || before.includes('#');
	if (firstIndex === (previousUnit ? previousUnit.lastIndex + 1 : 0)) return before;
	const isSetOff = previousUnit && paragraph !== previousUnit.paragraph && (isTall || previousUnit.isTall);
	return `${isSetOff ? '\n\n' : '\n'}${before.trimStart()}`;
}

/** Returns the text of several lines of one group; undefined if no text would mean the same. */
function textOfGroup(pieces: readonly LinePiece[]): string | undefined {
	const textOf = (lines: readonly LinePiece[]): string =>
		joinUnits(
			lines.map(({ index, paragraph, before, group }) => {
				return { before, text: group!.text, firstIndex: index, lastIndex: index, paragraph, isTall: false };
			}),
		);
	const { branch, matcher } = pieces[0]!.group!;
	if (branch === undefined) return `route ${matcher} {${textOf(pieces)}\n}`;
	const branches = [...Map.groupBy(pieces, ({ group }) => group!.branch).values()];
	const heads = branches.map(lines => whenHead(lines[0]!.group!.matcher));
	if (heads.length === 1 || heads.slice(0, -1).includes('')) return undefined;
	return branches.map((lines, i) => `${i === 0 ? '' : ' else '}${heads[i]}{${textOf(lines)}\n}`).join('');
}

/** Returns the beginning of a branch of `when`; '' if the branch has no condition. */
function whenHead(matcher: string | undefined): string {
	if (matcher === undefined) return '';
	return `when ${matcher.startsWith('@') ? '' : 'path '}${matcher} `;
}

/**
 * Returns the line `try_policy …` to add to the block of `php_fastcgi`; '' if it is not needed. It is needed if the last tried
 * file is a script, because the default policy is then not the same in a Compatfile and a Configfile.
 */
function policyOfScripts(block: ParsedBlock | undefined): string {
	const argumentsOf = (name: string): readonly string[] | undefined =>
		block?.lines.findLast(({ words }) => words[0]?.text === name)?.words.map(({ text }) => text);
	const index = argumentsOf('index')?.[1] ?? 'index.php';
	const lastFile = argumentsOf('try_files')?.at(-1) ?? index;
	return index !== 'off' && /\.php$/i.test(lastFile) ? `try_policy ${COMPATIBLE_FALLBACK_POLICY}\n` : '';
}
