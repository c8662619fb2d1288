//! Weights added up by what they lead to.

/// The sums of the weights from one node to each community or part; kept from one node to the next.
#[derive(Debug, Default)]
pub(super) struct Sums {
    /// By community; 0 for all that are not touched.
    weights: Vec<f64>,
    /// The communities that have a sum, in the order in which they were met, as many as `met`; what is behind them says nothing.
    touched: Vec<u32>,
    met: usize,
}

impl Sums {
    /// Makes room for so many communities.
    pub(super) fn fit(&mut self, communities: usize) {
        self.clear();
        self.weights.resize(communities, 0.0);
        self.touched.resize(communities + 1, 0);
    }

    /// Adds positive weights to the sums of communities.
    pub(super) fn add(&mut self, weights: impl Iterator<Item = (u32, f64)>) {
        let (sums, touched, mut met) = (&mut self.weights[..], &mut self.touched[..], self.met);
        for (community, weight) in weights {
            let sum = &mut sums[community as usize];
            // Written each time and kept if new: whether it is new is hard to foretell, so that a branch costs more.
            touched[met] = community;
            met += usize::from(*sum == 0.0);
            *sum += weight;
        }
        self.met = met;
    }

    /// The sum of a community.
    pub(super) fn of(&self, community: u32) -> f64 {
        self.weights[community as usize]
    }

    /// The communities that have a sum, in the order in which they were met, with it.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.touched[..self.met].iter().map(|community| (*community, self.weights[*community as usize]))
    }

    /// Takes all sums away.
    pub(super) fn clear(&mut self) {
        for community in &self.touched[..self.met] {
            self.weights[*community as usize] = 0.0;
        }
        self.met = 0;
    }
}
