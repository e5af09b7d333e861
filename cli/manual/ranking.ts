/**
 * Ranks documents for a question in everyday words. `svc help` and the search of the documentation site share this file.
 *
 * The site's script contains the source text of {@link wordsOf} and {@link rank} (see documentation/assets.ts). Without their
 * types, these functions must therefore be plain JavaScript, and refer to nothing outside of themselves.
 */

/** The search index of a set of documents, which can be written as JSON. */
export interface RankingIndex {
	/** Number of documents. */
	readonly count: number;
	/**
	 * For each word, as returned by {@link wordsOf}: the numbers of the documents that contain the word, and the weight of the word
	 * in each.
	 */
	readonly words: { readonly [word: string]: readonly (readonly [document: number, weight: number])[] };
}

/** A document that a search found. */
export interface RankedDocument {
	/** The document's number in the index. */
	readonly document: number;
	readonly score: number;
}

/**
 * Splits a text into words, in lower case and without the endings of plurals and verbs. An identifier such as `reverse_proxy` is a
 * word itself, followed by its parts.
 */
export function wordsOf(text: string): string[] {
	return (text.toLowerCase().match(/[a-z0-9]+(?:_[a-z0-9]+)*/g) ?? []).flatMap(identifier => {
		const parts = identifier
			.split('_')
			.map(word => (word.length > 4 && !word.endsWith('ss') ? word.replace(/(?:ies|ing|ed|es|s|e|y)$/, '') : word));
		return parts.length > 1 ? [identifier, ...parts] : parts;
	});
}

/**
 * Returns the documents in which all words of a question occur or, if there is no such document, most of the words. The best
 * match is first. `questionWords` are the question's words as {@link wordsOf} returns them. With `completes`, the last word also
 * matches words that begin with it.
 */
export function rank(
	index: RankingIndex,
	questionWords: readonly string[],
	completes: boolean = false,
): RankedDocument[] {
	// Words such as "how" and "the", which say nothing about the subject of a question.
	const ignoredWords = new Set(
		'a an and are as at be by can cannot do does for from get have how i in is it me my of on or our set should so svc that the this to use using want what when where which why with without you your'.split(
			' ',
		),
	);
	const searchWords = [...new Set(questionWords)].filter(word => !ignoredWords.has(word));
	const scoresByDocument = new Map<number, { score: number; matched: number }>();
	searchWords.forEach((word, wordIndex) => {
		let postings: readonly (readonly [number, number])[] = Object.hasOwn(index.words, word) ? index.words[word]! : [];
		if (postings.length === 0 && completes && wordIndex === searchWords.length - 1) {
			const bestWeights = new Map<number, number>();
			for (const [indexedWord, documents] of Object.entries(index.words)) {
				if (!indexedWord.startsWith(word)) continue;
				for (const [document, weight] of documents)
					bestWeights.set(document, Math.max(weight, bestWeights.get(document) ?? 0));
			}
			postings = [...bestWeights];
		}
		// A rare word says more about the subject of a question than a common one.
		const rarity = Math.log(1 + index.count / Math.max(1, postings.length));
		for (const [document, weight] of postings) {
			const { score, matched } = scoresByDocument.get(document) ?? { score: 0, matched: 0 };
			scoresByDocument.set(document, { score: score + weight * rarity, matched: matched + 1 });
		}
	});
	const maxMatched = Math.max(0, ...[...scoresByDocument.values()].map(({ matched }) => matched));
	if (maxMatched === 0 || maxMatched < searchWords.length / 2) return [];
	return [...scoresByDocument]
		.filter(([, { matched }]) => matched === maxMatched)
		.map(([document, { score }]) => ({ document, score }))
		.sort((a, b) => b.score - a.score || a.document - b.document);
}

/** Builds the index for {@link rank}. Documents are numbered in the order in which they are added. */
export class RankingIndexBuilder {
	#documentCount = 0;
	readonly #postingsByWord = new Map<string, [document: number, weight: number][]>();

	/** Adds a document: its texts, each with the weight of its words. */
	addDocument(texts: readonly (readonly [text: string, weight: number])[]): void {
		const weights = new Map<string, number>();
		for (const [text, weight] of texts) {
			for (const word of new Set(wordsOf(text))) weights.set(word, (weights.get(word) ?? 0) + weight);
		}
		for (const [word, weight] of weights) {
			const postings = this.#postingsByWord.get(word) ?? [];
			postings.push([this.#documentCount, weight]);
			this.#postingsByWord.set(word, postings);
		}
		this.#documentCount++;
	}

	buildIndex(): RankingIndex {
		return { count: this.#documentCount, words: Object.fromEntries(this.#postingsByWord) };
	}
}
