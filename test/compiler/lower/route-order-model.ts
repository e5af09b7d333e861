/**
 * A model of how Caddy orders the routes of a block. It was written from Caddy's documentation, independently of the compiler's
 * code, and consists of the comparison of two routes and the sorting algorithm.
 */

/** A route, reduced to the properties that determine its order. */
export interface ModelRoute {
	/** The position of the route's directive in the directive order. */
	readonly rank: number;
	readonly directive: string;
	/** The number of the route's matcher sets: 0 or 1. */
	readonly sets: number;
	/** The paths of the route's path matcher. */
	readonly paths: readonly string[];
}

/** Sorts routes: sorts runs of twenty routes by insertion, then merges neighboring runs until one run is left. */
export function sortByModel<T extends ModelRoute>(routes: readonly T[]): T[] {
	let runs: T[][] = [];
	for (let at = 0; at < routes.length; at += 20) runs.push(inserted(routes.slice(at, at + 20)));
	while (runs.length > 1) {
		const merged: T[][] = [];
		for (let at = 0; at < runs.length; at += 2) {
			const [left, right] = [runs[at]!, runs[at + 1]];
			merged.push(right ? symMerge(left, right) : left);
		}
		runs = merged;
	}
	return runs[0] ?? [];
}

function inserted<T extends ModelRoute>(routes: readonly T[]): T[] {
	return routes.reduce<T[]>((sorted, route) => {
		const stop = sorted.findLastIndex(other => !isBefore(route, other));
		return [...sorted.slice(0, stop + 1), route, ...sorted.slice(stop + 1)];
	}, []);
}

/** Merges two sorted lists by the SymMerge algorithm, without changing them. */
function symMerge<T extends ModelRoute>(left: readonly T[], right: readonly T[]): T[] {
	if (left.length === 0 || right.length === 0) return [...left, ...right];
	if (left.length === 1) {
		const cut = firstFailing(0, right.length, i => isBefore(right[i]!, left[0]!));
		return [...right.slice(0, cut), ...left, ...right.slice(cut)];
	}
	if (right.length === 1) {
		const cut = firstFailing(0, left.length, i => !isBefore(right[0]!, left[i]!));
		return [...left.slice(0, cut), ...right, ...left.slice(cut)];
	}
	const all = [...left, ...right];
	const m = left.length;
	const mid = all.length >> 1;
	const n = mid + m;
	const from = m > mid ? n - all.length : 0;
	const to = m > mid ? mid : m;
	const start = firstFailing(from, to, c => !isBefore(all[n - 1 - c]!, all[c]!));
	const end = n - start;
	const turned = start < m && m < end ? [...all.slice(0, start), ...all.slice(m, end), ...all.slice(start, m)] : all;
	const whole = [...turned, ...all.slice(turned.length)];
	const head = whole.slice(0, mid);
	const tail = whole.slice(mid);
	return [
		...symMerge(head.slice(0, start), head.slice(start)),
		...symMerge(tail.slice(0, end - mid), tail.slice(end - mid)),
	];
}

/** Returns the first index for which `holds` returns false, by bisection. */
function firstFailing(from: number, to: number, holds: (index: number) => boolean): number {
	if (from >= to) return from;
	const half = (from + to) >> 1;
	return holds(half) ? firstFailing(half + 1, to, holds) : firstFailing(from, half, holds);
}

/** Returns true if Caddy orders `a` before `b`. */
function isBefore(a: ModelRoute, b: ModelRoute): boolean {
	if (a.rank !== b.rank) return a.rank < b.rank;
	if (a.directive === 'php_fastcgi' && (a.sets === 0 || b.sets === 0)) return false;
	const answer = lessBySpecificity(a, b);
	return a.directive === 'vars' ? !answer : answer;
}

function lessBySpecificity(a: ModelRoute, b: ModelRoute): boolean {
	if (a.paths.length !== 1 || b.paths.length !== 1) return a.sets > 0 && b.sets === 0;
	const [one, two] = [a.paths[0]!, b.paths[0]!];
	const [bare, other] = [one.replace(/\*$/, ''), two.replace(/\*$/, '')];
	if (bare === other) return bytes(one).length < bytes(two).length;
	if (bytes(bare).length !== bytes(other).length) return bytes(bare).length > bytes(other).length;
	// Code points are compared, because they have the same order as the bytes of the text in UTF-8.
	for (const [i, point] of [...bare].entries()) {
		const otherPoint = [...other][i]!;
		if (point !== otherPoint) return point.codePointAt(0)! < otherPoint.codePointAt(0)!;
	}
	return false;
}

function bytes(text: string): Uint8Array {
	return new TextEncoder().encode(text);
}
