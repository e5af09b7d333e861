/**
 * The grammar of both text dialects, Configfile and Compatfile: lines of words with blocks. It knows no names of directives, and
 * accepts every token sequence.
 */
import { EmbeddedActionsParser, EOF } from 'chevrotain';
import type { Report } from '../diagnostics/diagnostic.ts';
import type { Dialect } from '../dialects/dialect.ts';
import { type SubstitutedText, substituteEnvironment } from '../source/environment.ts';
import type { Source } from '../source/source.ts';
import type { ParsedFile } from './parsed-file.ts';
import { ParsedTree } from './parsed-tree.ts';
import { CloseBrace, Newline, OpenBrace, tokenize, vocabulary, Word, type WordToken } from './tokens.ts';

/**
 * The Chevrotain grammar: which token sequences form a line, a block or an `else`. {@link ParsedTree} builds the tree and
 * reports mistakes. The grammar accepts every token sequence, so Chevrotain's own error recovery is never used.
 */
class ConfigParser extends EmbeddedActionsParser {
	/** The tree under construction; a new one for each parse. */
	tree: ParsedTree | undefined;

	constructor() {
		super(vocabulary, { recoveryEnabled: true, maxLookahead: 1, skipValidations: true });
		this.performSelfAnalysis();
	}

	/** Makes the methods that describe rules record them instead of parsing. Chevrotain calls it before it analyzes the grammar. */
	enableRecording(): void {
		Object.setPrototypeOf(this, recordingPrototype());
	}

	/** Ends {@link enableRecording}. */
	disableRecording(): void {
		Object.setPrototypeOf(this, ConfigParser.prototype);
	}

	readonly file = this.RULE('file', () => {
		this.MANY(() => {
			this.OR([
				{ ALT: () => this.CONSUME(Newline) },
				{ ALT: () => this.SUBRULE(this.line) },
				{ ALT: () => this.SUBRULE(this.bareBlock) },
				{
					ALT: () => {
						const strayBrace = this.CONSUME(CloseBrace);
						this.ACTION(() => this.tree!.handleStrayClose(strayBrace, this.LA(-1)?.tokenType));
					},
				},
			]);
		});
	});

	readonly line = this.RULE('line', () => {
		this.ACTION(() => this.tree!.beginLine(this.LA(0).tokenType));
		this.AT_LEAST_ONE(() => {
			const word = this.CONSUME(Word);
			this.ACTION(() => this.tree!.addWord(word));
		});
		this.OPTION(() => this.SUBRULE(this.block));
		this.MANY({
			GATE: () => this.tree!.continuesWithElse(this.LA(1)),
			DEF: () => this.SUBRULE(this.alternative),
		});
		this.ACTION(() => this.tree!.endLine());
	});

	readonly alternative = this.RULE('alternative', () => {
		this.ACTION(() => this.tree!.beginAlternative());
		this.AT_LEAST_ONE(() => {
			const word = this.CONSUME(Word);
			this.ACTION(() => this.tree!.addWord(word));
		});
		this.OPTION(() => this.SUBRULE(this.block));
	});

	readonly bareBlock = this.RULE('bareBlock', () => {
		this.ACTION(() => this.tree!.beginLine(this.LA(0).tokenType));
		this.SUBRULE(this.block);
		this.ACTION(() => this.tree!.endLine());
	});

	readonly block = this.RULE('block', () => {
		const openBrace = this.CONSUME(OpenBrace);
		this.ACTION(() => {
			this.tree!.openBlock(openBrace, this.LA(1));
			if (this.tree!.isTooDeep) this.#skipBlock();
		});
		this.MANY({
			GATE: () => this.tree!.staysInBlock(this.LA(1)),
			DEF: () =>
				this.OR([
					{ ALT: () => this.CONSUME(Newline) },
					{ ALT: () => this.SUBRULE(this.line) },
					{ ALT: () => this.SUBRULE(this.bareBlock) },
					{
						ALT: () => {
							const strayBrace = this.CONSUME(CloseBrace);
							this.ACTION(() => this.tree!.handleStrayClose(strayBrace, undefined));
						},
					},
				]),
		});
		this.OPTION({
			GATE: () => this.tree!.closesBlock(this.LA(1)),
			DEF: () => {
				const closeBrace = this.CONSUME2(CloseBrace);
				this.ACTION(() => this.tree!.closeBlock(closeBrace, this.LA(-1).tokenType));
			},
		});
		this.ACTION(() => this.tree!.leaveBlock());
	});

	/** Skips to the `}` that closes the block that has just been opened. */
	#skipBlock(): void {
		let depth = 1;
		for (let token = this.LA(1); token.tokenType !== EOF; token = this.SKIP_TOKEN()) {
			if (token.tokenType === OpenBrace) depth++;
			else if (token.tokenType === CloseBrace && --depth === 0) return;
		}
	}
}

/**
 * Returns an object whose methods record the rules of a parser. Chevrotain would add these methods to the parser and then delete
 * them one by one, which takes milliseconds.
 */
function recordingPrototype(): object {
	const prototype = Object.create(ConfigParser.prototype);
	(EmbeddedActionsParser.prototype as unknown as { enableRecording(): void }).enableRecording.call(prototype);
	return prototype;
}

// All parses share one parser, because building the tables of the grammar takes milliseconds. Parses never overlap, and the parser
// keeps no state between them.
const parser = new ConfigParser();

function buildTree(tokens: WordToken[], tree: ParsedTree): ParsedTree {
	parser.tree = tree;
	tree.lastToken = tokens.findLast(
		({ tokenType, payload }) => tokenType !== Newline && (!payload || payload.text !== undefined),
	);
	parser.input = tokens;
	parser.file();
	parser.tree = undefined;
	parser.input = [];
	return tree;
}

/** Splits a brace off the last word of each line, because `a.com{` and `respond hi}` were probably meant as a word and a brace. */
function splitGluedBraces(tokens: readonly WordToken[]): WordToken[] {
	return tokens.flatMap((token, index) => {
		const next = tokens[index + 1];
		const { image } = token;
		if (token.payload || image.length < 2 || (next && next.tokenType !== Newline)) return [token];
		const braceType = image.endsWith('{')
			? OpenBrace
			: image.endsWith('}') && !image.includes('{')
				? CloseBrace
				: undefined;
		if (!braceType) return [token];
		const brace: WordToken = {
			...token,
			image: image.slice(-1),
			startOffset: token.startOffset + image.length - 1,
			tokenType: braceType,
			tokenTypeIdx: braceType.tokenTypeIdx!,
		};
		return [{ ...token, image: image.slice(0, -1) }, brace];
	});
}

/**
 * Parses a source: replaces its environment variables, splits it into words and lines, and reports every structural mistake where
 * it occurs. If the braces do not balance, the text is parsed a second time, taking its indentation into account. If the second
 * parse does not find more unbalanced braces than the first, the missing brace is reported where the indentation suggests it
 * rather than at the end of the file.
 */
export function parseSource(
	source: Source,
	dialect: Dialect,
	env: (name: string) => string | undefined,
	report: Report,
): ParsedFile {
	return parseSubstitutedText(source, substituteEnvironment(source.text, env), dialect, report);
}

/**
 * Parses a text whose environment variables have already been replaced, like {@link parseSource}. `source` is the original text, to
 * which offsets are mapped back.
 */
export function parseSubstitutedText(
	source: Source,
	substitutedText: SubstitutedText,
	dialect: Dialect,
	report: Report,
): ParsedFile {
	// A byte order mark is recognized only at the beginning of a file.
	const isWholeFile = source.cutPlace === undefined && substitutedText.originalStart(0) === 0;
	const hasByteOrderMark = isWholeFile && substitutedText.text.charCodeAt(0) === 0xfeff;
	const tokens = tokenize(hasByteOrderMark ? ` ${substitutedText.text.slice(1)}` : substitutedText.text, dialect);
	let tree = buildTree(tokens, new ParsedTree(source, substitutedText, dialect, false));
	if (tree.unbalancedBraceCount > 0 && !tree.hasUnclosedWord) {
		const splitTokens = splitGluedBraces(tokens);
		const splitTree = buildTree(splitTokens, new ParsedTree(source, substitutedText, dialect, false));
		if (splitTree.unbalancedBraceCount < tree.unbalancedBraceCount) tree = splitTree;
		const indentedTree = buildTree(
			tree === splitTree ? splitTokens : tokens,
			new ParsedTree(source, substitutedText, dialect, true),
		);
		if (indentedTree.unbalancedBraceCount <= tree.unbalancedBraceCount) tree = indentedTree;
	}
	for (const diagnostic of tree.diagnostics) report(diagnostic);
	return { source, lines: tree.lines, isBlank: tokens.every(token => token.tokenType === Newline) };
}
