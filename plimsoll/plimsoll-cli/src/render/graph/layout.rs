//! Where the nodes of a graph stand: in rows, so that edges point downwards where they can.

use super::Graph;

/// For each row its nodes, from left to right.
pub(super) fn rows(graph: &Graph) -> Vec<Vec<usize>> {
    let count = graph.nodes.len();
    let mut incoming = vec![0_usize; count];
    let mut outgoing: Vec<Vec<usize>> = vec![Vec::new(); count];
    for edge in graph.edges.iter().filter(|edge| edge.from != edge.to) {
        incoming[edge.to] += 1;
        outgoing[edge.from].push(edge.to);
    }
    let mut row = vec![0_usize; count];
    let mut placed = vec![false; count];
    let mut ready: Vec<usize> = (0..count).filter(|node| incoming[*node] == 0).collect();
    let mut next_unplaced = 0;
    loop {
        while let Some(node) = ready.pop() {
            placed[node] = true;
            for &to in &outgoing[node] {
                row[to] = if placed[to] { row[to] } else { row[to].max(row[node] + 1) };
                incoming[to] = incoming[to].saturating_sub(1);
                if incoming[to] == 0 && !placed[to] {
                    ready.push(to);
                }
            }
        }
        // What is left is part of a circle: it begins somewhere.
        while next_unplaced < count && placed[next_unplaced] {
            next_unplaced += 1;
        }
        if next_unplaced == count {
            break;
        }
        incoming[next_unplaced] = 0;
        ready.push(next_unplaced);
    }
    let last = row.iter().copied().max().unwrap_or_default();
    let mut rows = vec![Vec::new(); last + 1];
    (0..count).for_each(|node| rows[row[node]].push(node));
    rows.retain(|row| !row.is_empty());
    untangle(graph, &mut rows);
    rows
}

/// Puts each node below the middle of those that point to it.
fn untangle(graph: &Graph, rows: &mut [Vec<usize>]) {
    let mut sources: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes.len()];
    for edge in &graph.edges {
        sources[edge.to].push(edge.from);
    }
    let mut position = vec![0_usize; graph.nodes.len()];
    for row in rows {
        let middle = |node: &usize| {
            let sources = &sources[*node];
            let sum: usize = sources.iter().map(|source| position[*source]).sum();
            // In hundredths, so that it can be compared.
            (sum * 100).checked_div(sources.len()).unwrap_or_default()
        };
        row.sort_by_cached_key(middle);
        for (at, node) in row.iter().enumerate() {
            position[*node] = at;
        }
    }
}
