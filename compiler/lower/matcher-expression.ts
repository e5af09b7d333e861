/**
 * Lowers matcher expressions. In a Configfile, they may have operators, as in `path /a* and not ( method GET or @b )`. In both
 * dialects, a single matcher or a block of matchers is allowed.
 */

import { didYouMean, type Suggestion } from '../diagnostics/suggest.ts';
import type { Matcher } from '../document/document.ts';
import type { MatcherModule } from '../modules/contract/matcher.ts';
import { expression } from '../modules/matchers/expression/expression.ts';
import type { Block, Line, Word } from '../syntax/ast.ts';
import { formatNameList, spanOfWords } from './context/sentences.ts';
import type { Lowering } from './lowering.ts';
import { MAX_MATCHER_DEPTH } from './matcher-limits.ts';

const OPERATORS = new Set(['and', 'or', 'not', '(', ')']);

/** Stands for an expression whose mistake has been reported, so that nothing else is reported about it. */
const BROKEN_MATCHER: Matcher = { type: 'any', of: [] };

/**
 * Lowers a matcher expression: the words and the block after `@name`, `when` or `not`. Returns undefined after a mistake has been
 * reported; the rest is still checked as far as possible.
 */
export function lowerMatcherExpression(
	lowering: Lowering,
	words: readonly Word[],
	block: Block | undefined,
	name: string | undefined,
): Matcher | undefined {
	const reader = new ExpressionReader(lowering, words, block, name);
	const matcher = reader.readExpression();
	return reader.isBroken ? undefined : matcher;
}

/** Matches every request. In a Compatfile, this is the meaning of a matcher without conditions. */
const MATCH_ALL: Matcher = { type: 'all', of: [] };

class ExpressionReader {
	isBroken = false;
	readonly #lowering: Lowering;
	readonly #words: readonly Word[];
	readonly #matcherName: string | undefined;
	#block: Block | undefined;
	#wordIndex = 0;
	readonly #allowsOperators: boolean;

	constructor(lowering: Lowering, words: readonly Word[], block: Block | undefined, name: string | undefined) {
		this.#lowering = lowering;
		this.#words = words;
		this.#block = block;
		this.#matcherName = name;
		this.#allowsOperators = lowering.dialect === 'configfile';
	}

	readExpression(): Matcher {
		if (this.#words.length === 0) {
			if (this.#block) return this.#lowerBlock(this.#block);
			if (!this.#allowsOperators) return MATCH_ALL;
			this.isBroken = true;
			return BROKEN_MATCHER;
		}
		const matcher = this.#readOr();
		const unexpectedWord = this.#words[this.#wordIndex];
		if (unexpectedWord && !this.isBroken) {
			const hint = unexpectedWord.text === ')' ? 'Remove it, or add the `(` that it closes.' : undefined;
			this.#fail('matcher/unexpected-word', unexpectedWord, `\`${unexpectedWord.text}\` is unexpected here.`, { hint });
		}
		if (this.#block && !this.isBroken) {
			this.isBroken = true;
			const lastWord = this.#words[this.#words.length - 1]!;
			const message = `\`${lastWord.text}\` takes no block.`;
			this.#lowering.problem('error', 'matcher/unexpected-block', this.#block.open, message);
		}
		return matcher;
	}

	#currentOperator(): string | undefined {
		const word = this.#words[this.#wordIndex];
		if (word?.quote !== 'none') return undefined;
		if (!this.#allowsOperators) return word.text === 'not' ? 'not' : undefined;
		return OPERATORS.has(word.text) ? word.text : undefined;
	}

	#readOr(): Matcher {
		const parts = [this.#readAnd()];
		while (this.#currentOperator() === 'or') {
			this.#wordIndex++;
			parts.push(this.#readAnd());
		}
		return parts.length === 1 ? parts[0]! : { type: 'any', of: parts };
	}

	#readAnd(): Matcher {
		const parts = [this.#readUnary()];
		while (this.#currentOperator() === 'and') {
			this.#wordIndex++;
			parts.push(this.#readUnary());
		}
		return parts.length === 1 ? parts[0]! : { type: 'all', of: parts };
	}

	#readUnary(): Matcher {
		const operator = this.#currentOperator();
		if (operator === 'not') {
			const word = this.#words[this.#wordIndex]!;
			this.#wordIndex++;
			if (this.#wordIndex === this.#words.length && this.#block) {
				const block = this.#block;
				this.#block = undefined;
				return this.#withOrigin({ type: 'not', of: this.#readDeeper(word, () => this.#lowerBlock(block)) }, word);
			}
			if (this.#wordIndex === this.#words.length && !this.#allowsOperators) {
				this.#lowering.problem('warning', 'matcher/missing', word.span, '`not` without a matcher matches nothing.');
				return this.#withOrigin({ type: 'not', of: MATCH_ALL }, word);
			}
			return this.#withOrigin({ type: 'not', of: this.#readDeeper(word, () => this.#readUnary()) }, word);
		}
		if (operator === '(') {
			const openParenthesis = this.#words[this.#wordIndex]!;
			this.#wordIndex++;
			const innerMatcher = this.#readDeeper(openParenthesis, () => this.#readOr());
			if (this.#currentOperator() === ')') this.#wordIndex++;
			else if (!this.isBroken) {
				const lastWord = this.#words[this.#words.length - 1]!;
				const isGlued = lastWord.text.length > 1 && lastWord.text.endsWith(')') && lastWord.quote === 'none';
				this.#fail('matcher/unclosed-parenthesis', openParenthesis, 'This `(` is not closed.', {
					hint: isGlued ? `Put a space before the \`)\` of \`${lastWord.text}\`.` : undefined,
				});
			}
			return innerMatcher;
		}
		if (operator !== undefined || this.#wordIndex >= this.#words.length) return this.#reportMissingMatcher(operator);
		return this.#readPrimary();
	}

	#readDeeper(word: Word, read: () => Matcher): Matcher {
		const matcher = this.#lowering.matcherLimits.runDeeper(read);
		if (matcher) return matcher;
		const { matcherLimits } = this.#lowering;
		if (!this.isBroken && !matcherLimits.isReported) {
			this.#fail('matcher/too-deep', word, `Matchers are nested more than ${MAX_MATCHER_DEPTH} levels deep.`);
			matcherLimits.isReported = true;
		}
		this.isBroken = true;
		this.#wordIndex = this.#words.length;
		return BROKEN_MATCHER;
	}

	#reportMissingMatcher(operator: string | undefined): Matcher {
		const previousWord = this.#words[this.#wordIndex - 1] ?? this.#words[this.#wordIndex]!;
		const reportedWord = operator === undefined ? previousWord : this.#words[this.#wordIndex]!;
		const message =
			operator === undefined
				? `A matcher is missing after \`${previousWord.text}\`.`
				: `A matcher is missing before \`${operator}\`.`;
		this.#fail('matcher/missing', reportedWord, message);
		if (operator !== undefined) this.#wordIndex++;
		return BROKEN_MATCHER;
	}

	#readPrimary(): Matcher {
		const lowering = this.#lowering;
		const word = this.#words[this.#wordIndex]!;
		const isUnquoted = word.quote === 'none';
		if (isUnquoted && this.#allowsOperators && word.text.startsWith('@')) {
			this.#wordIndex++;
			const matcher = lowering.matcherScope?.resolve(word);
			if (!matcher) this.isBroken = true;
			return matcher ?? BROKEN_MATCHER;
		}
		if (isUnquoted && this.#allowsOperators && word.text.length > 1 && word.text.startsWith('(')) {
			this.#fail('matcher/glued-parenthesis', word, `\`${word.text}\` is not a matcher.`, {
				hint: `Put a space after the \`(\`: \`( ${word.text.slice(1)}\`.`,
			});
			this.#wordIndex = this.#words.length;
			return BROKEN_MATCHER;
		}
		const words = [word];
		this.#wordIndex++;
		while (this.#wordIndex < this.#words.length && !(this.#allowsOperators && this.#currentOperator() !== undefined)) {
			words.push(this.#words[this.#wordIndex]!);
			this.#wordIndex++;
		}
		if (!isUnquoted) return this.#lowerQuotedExpression(words);
		const module = lowering.environment.registry.matchers.get(word.text);
		if (!module || COMBINATORS.has(word.text)) return this.#reportUnknownMatcher(word);
		let block: Block | undefined;
		if (this.#wordIndex === this.#words.length) {
			block = this.#block;
			this.#block = undefined;
		}
		return this.#lowerModule(module, words, block);
	}

	#lowerModule(module: MatcherModule, words: readonly Word[], block: Block | undefined): Matcher {
		const [name, argument] = words as [Word, Word?];
		if (!this.#allowsOperators && !argument && !block && module.valuesOptional) {
			const message = `\`${name.text}\` without values matches nothing.`;
			this.#lowering.problem('warning', 'matcher/without-values', name.span, message, {
				hint: `Usage: ${module.usage}`,
			});
			return this.#withOrigin({ type: 'any', of: [] }, name);
		}
		this.#lowering.matcherLimits.addMatchers(1);
		const wordsSpan = spanOfWords(words);
		const span = block && block.close.source === wordsSpan.source ? { ...wordsSpan, end: block.close.end } : wordsSpan;
		const line: Line = { words, block, alternative: undefined, span };
		const matcher = module.lower(line, this.#lowering, this.#matcherName);
		if (!matcher) {
			this.isBroken = true;
			return BROKEN_MATCHER;
		}
		return this.#lowering.origin(matcher, span);
	}

	/** Lowers a block of matchers, all of which must match. Matchers of the same kind are merged. */
	#lowerBlock(block: Block): Matcher {
		const parts: Matcher[] = [];
		for (const line of block.lines) {
			const matcher = lowerMatcherExpression(this.#lowering, line.words, line.block, this.#matcherName);
			if (!matcher) this.isBroken = true;
			else this.#mergeOrAdd(parts, matcher, line);
		}
		if (parts.length === 0 && !this.isBroken && !this.#allowsOperators) {
			const message = 'This block holds no matcher, so it matches everything.';
			this.#lowering.problem('warning', 'matcher/missing', block.open, message);
		} else if (parts.length === 0 && !this.isBroken) {
			this.isBroken = true;
			this.#lowering.problem('error', 'matcher/missing', block.open, 'This block holds no matcher.');
		}
		return parts.length === 1 ? parts[0]! : { type: 'all', of: parts };
	}

	#mergeOrAdd(parts: Matcher[], matcher: Matcher, line: Line): void {
		const { merge, conflict } = this.#lowering.environment.registry.matchers.get(matcher.type) ?? {};
		for (const part of conflict ? parts : []) {
			const reason = part.type === matcher.type ? conflict!(part, matcher) : undefined;
			if (reason === undefined) continue;
			this.#fail('matcher/repeated', line.words[0]!, reason);
			return;
		}
		for (let index = 0; merge && index < parts.length; index++) {
			const mergedMatcher = parts[index]!.type === matcher.type ? merge(parts[index]!, matcher) : undefined;
			if (!mergedMatcher) continue;
			parts[index] = mergedMatcher;
			return;
		}
		parts.push(matcher);
	}

	#lowerQuotedExpression(words: readonly Word[]): Matcher {
		const [word, extraWord] = words as readonly [Word, Word | undefined];
		if (extraWord) {
			this.#fail('matcher/unexpected-word', extraWord, `\`${extraWord.text}\` is unexpected here.`, {
				hint: 'A quoted word is a complete expression by itself.',
			});
			return BROKEN_MATCHER;
		}
		const name: Word = { text: expression.id, quote: 'none', span: word.span };
		return this.#lowerModule(expression, [name, word], undefined);
	}

	#reportUnknownMatcher(word: Word): Matcher {
		const matcherTypes = this.#lowering.environment.registry.matchers.keys();
		const knownNames = [...new Set([...matcherTypes, 'not'])].filter(name => !COMBINATORS.has(name) || name === 'not');
		const isCompatfile = this.#lowering.dialect === 'compatfile';
		const message = isCompatfile
			? `getting matcher module '${word.text}': there is no such matcher`
			: `\`${word.text}\` is not a matcher.`;
		const suggestion = didYouMean(word, knownNames);
		const isReference = isCompatfile && word.quote === 'none' && word.text.startsWith('@');
		if (isReference) {
			const hint =
				'In a Compatfile, a matcher cannot refer to another one: repeat its conditions. In a Configfile, it can.';
			this.#fail('matcher/unknown', word, message, { hint });
			this.#block = undefined;
			return BROKEN_MATCHER;
		}
		const hint = suggestion.label === undefined ? `The matchers are ${formatNameList(knownNames.sort())}.` : undefined;
		this.#fail('matcher/unknown', word, message, { ...suggestion, hint });
		this.#block = undefined;
		return BROKEN_MATCHER;
	}

	#fail(code: string, word: Word, message: string, details?: Suggestion & { hint?: string | undefined }): void {
		this.isBroken = true;
		this.#lowering.problem('error', code, word.span, message, details);
	}

	#withOrigin(matcher: Matcher, word: Word): Matcher {
		return this.#lowering.origin(matcher, word.span);
	}
}

/** Types of matchers that have no name of their own in the languages. */
const COMBINATORS: ReadonlySet<string> = new Set(['all', 'any', 'not']);
