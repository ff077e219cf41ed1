//! Claims of a paper, judged by one criterion in every setting that has their figures.
//!
//! `prove/parts/papers/NAME.toml` has them. A setting is on a plan's page: its expressions see the raw data and the
//! names of that page, and names of its own. A claim has one criterion or several, each with a figure of the paper or
//! with cases; the worst one decides. A part's page is made from the verdicts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ClaimsError;
use super::claims::Claims;
use super::data::Data;
use super::scope::Scope;
use super::series::Selection;

/// Shares of the paper's effect from which a claim agrees, agrees by half, and has the paper's direction.
const AGREES_SHARE: f64 = 0.95;
const HALF_SHARE: f64 = 0.5;
const DIRECTION_SHARE: f64 = 0.2;

/// Verdicts of the former criterion, the best first.
const FORMER: [&str; 3] = ["agrees", "partly", "no"];

/// Extent to which a claim holds, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Agreement {
    No,
    Direction,
    Half,
    Agrees,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Expressions in all settings, by name.
    #[serde(default)]
    define: BTreeMap<String, String>,
    setting: Vec<PaperSetting>,
    claim: Vec<PaperClaim>,
    #[serde(default)]
    remark: Vec<Remark>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct PaperSetting {
    id: String,
    name: String,
    /// Plan's page that has its raw data.
    page: String,
    differs: String,
    chosen: String,
    /// Values of axes by name, before those of the page.
    #[serde(default)]
    names: BTreeMap<String, Selection>,
    #[serde(default)]
    define: BTreeMap<String, String>,
    /// Whether the setting may count as the best one.
    #[serde(default = "yes")]
    counts: bool,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct PaperClaim {
    /// Figure or section of the paper.
    figure: String,
    says: String,
    /// Measured figures; a template.
    found: String,
    /// Settings in which it is judged, with the verdict of the former criterion.
    judged: BTreeMap<String, String>,
    by: Vec<Criterion>,
    /// Reason of a difference. It links to its experiment, or is called a guess.
    cause: Option<String>,
}

/// Has a figure with the paper's, or cases.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Criterion {
    what: String,
    figure: Option<String>,
    paper: Option<f64>,
    /// Figure that is no effect.
    #[serde(default)]
    neutral: f64,
    /// Share of the cases in which it holds.
    cases: Option<String>,
    /// Words and condition without which the claim does not hold.
    needs: Option<String>,
    #[serde(rename = "if")]
    condition: Option<String>,
}

/// A line on claims in a setting; `found` is a template.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Remark {
    at: String,
    claims: String,
    found: String,
}

fn yes() -> bool {
    true
}

/// Verdict of a criterion, or of the worst one of a claim.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
struct Score {
    verdict: Agreement,
    /// Share of the paper's effect, or of the cases; `None` if the condition does not hold.
    share: Option<f64>,
}

/// A claim in one setting; its score is `None` if a figure was not measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Judgement<'a> {
    figure: &'a str,
    says: &'a str,
    setting: &'a str,
    counts: bool,
    score: Option<Score>,
    found: String,
    former: &'a str,
}

impl Paper {
    /// Parses a paper's claims.
    ///
    /// # Errors
    /// [`ClaimsError`] says what is wrong with them.
    pub fn parse(part: &str, text: &str) -> Result<Self, ClaimsError> {
        let wrong = |reason| ClaimsError::Claims { part: part.to_owned(), reason };
        let paper: Self = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let first = paper.setting.first().map(|setting| setting.id.as_str()).unwrap_or_default();
        let is_known = |id: &String| paper.setting.iter().any(|setting| setting.id == *id);
        let is_shown = |cause: &String| cause.contains("](") || cause.starts_with("guess: ");
        for claim in &paper.claim {
            let says = format!("{}, '{}'", claim.figure, claim.says);
            if !claim.judged.contains_key(first) || !claim.judged.keys().all(is_known) {
                return Err(wrong(format!("{says}: judge it in {first} and in known settings")));
            }
            if !claim.cause.iter().all(is_shown) {
                return Err(wrong(format!("{says}: link the cause, or begin it with 'guess: '")));
            }
        }
        Ok(paper)
    }

    /// Names the pages whose raw data are needed.
    pub fn pages(&self) -> impl Iterator<Item = &str> {
        self.setting.iter().map(|setting| setting.page.as_str())
    }

    /// Judges all claims by other pages' claims and raw data.
    ///
    /// # Errors
    /// [`ClaimsError`] quotes the expression that is wrong.
    pub fn judge(&self, pages: &BTreeMap<String, (Claims, Data)>) -> Result<Value, ClaimsError> {
        let all_claims = self.setting.iter().map(|setting| {
            let mut claims = pages[&setting.page].0.clone();
            claims.setting.extend(setting.names.clone());
            claims.define.extend(self.define.clone());
            claims.define.extend(setting.define.clone());
            claims
        });
        let all_claims: Vec<Claims> = all_claims.collect();
        let scopes = self.setting.iter().zip(&all_claims);
        let scopes: Vec<Scope<'_>> =
            scopes.map(|(setting, claims)| Scope::new(&pages[&setting.page].1, claims)).collect();
        let claims: Vec<Value> = self
            .claim
            .iter()
            .map(|claim| self.judge_claim(claim, &scopes))
            .collect::<Result<_, _>>()?;
        let setting = |setting: &PaperSetting| {
            json!({ "name": setting.name, "page": setting.page, "differs": setting.differs,
                    "chosen": setting.chosen, "counts": setting.counts })
        };
        let remark = |remark: &Remark| {
            let found =
                self.setting.iter().zip(&scopes).find(|(setting, _)| setting.id == remark.at);
            let Some((setting, scope)) = found else {
                return Err(scopes[0].claims.wrong(format!("'{}' is no setting", remark.at)));
            };
            let found = scope.text(&remark.found)?;
            Ok(json!({ "setting": setting.name, "claims": remark.claims, "found": found }))
        };
        let remarks =
            self.remark.iter().map(remark).collect::<Result<Vec<Value>, ClaimsError>>()?;
        let settings: Vec<Value> = self.setting.iter().map(setting).collect();
        Ok(json!({ "settings": settings, "claims": claims, "remarks": remarks }))
    }

    fn judge_claim(&self, claim: &PaperClaim, scopes: &[Scope<'_>]) -> Result<Value, ClaimsError> {
        let mut all = Vec::new();
        for (setting, scope) in self.setting.iter().zip(scopes) {
            let Some(former) = claim.judged.get(&setting.id) else {
                continue;
            };
            let mut score = Some(Score { verdict: Agreement::Agrees, share: Some(f64::INFINITY) });
            for criterion in &claim.by {
                let one = criterion.judge(scope)?;
                score = if one < score { one } else { score };
            }
            let found = scope.text(&claim.found)?;
            let (figure, says) = (&claim.figure, &claim.says);
            let (setting, counts) = (&setting.name, setting.counts);
            all.push(Judgement { figure, says, setting, counts, score, found, former });
        }
        let counted = || all.iter().filter(|one| one.counts);
        let best =
            counted().fold(&all[0], |best, one| if one.score > best.score { one } else { best });
        let has = |word: &&str| counted().any(|one| one.former == *word);
        let criteria: Vec<Value> = claim.by.iter().map(Criterion::bounds).collect();
        Ok(
            json!({ "figure": claim.figure, "says": claim.says, "criteria": criteria, "cause": claim.cause,
                   "first": all[0], "best": best, "best_former": FORMER.into_iter().find(has), "all": all }),
        )
    }
}

impl Criterion {
    /// Judges by this criterion alone; `None` if a figure was not measured.
    fn judge(&self, scope: &Scope<'_>) -> Result<Option<Score>, ClaimsError> {
        let condition = self.condition.as_ref().map(|condition| scope.holds(condition));
        let needed = condition.unwrap_or(Ok(Some(true)))?;
        let (share, agrees, direction) = match (&self.figure, self.paper, &self.cases) {
            (Some(figure), Some(paper), None) => {
                let effect = scope.number(figure)?.map(|figure| figure - self.neutral);
                (
                    effect.map(|effect| effect / (paper - self.neutral)),
                    AGREES_SHARE,
                    DIRECTION_SHARE,
                )
            }
            (None, None, Some(cases)) => (scope.number(cases)?, 1.0, HALF_SHARE),
            _ => {
                let reason = format!("'{}': write figure and paper, or cases", self.what);
                return Err(scope.claims.wrong(reason));
            }
        };
        let (Some(share), Some(needed)) = (share, needed) else {
            return Ok(None);
        };
        if !needed {
            return Ok(Some(Score { verdict: Agreement::No, share: None }));
        }
        // A share need not be exact to its last digit.
        let reaches = |bound: f64| share >= bound - 1e-9;
        let verdict = if reaches(agrees) {
            Agreement::Agrees
        } else if reaches(HALF_SHARE) {
            Agreement::Half
        } else if reaches(direction) {
            Agreement::Direction
        } else {
            Agreement::No
        };
        Ok(Some(Score { verdict, share: Some(share) }))
    }

    /// Returns its words, and the figures from which it gives each verdict.
    fn bounds(&self) -> Value {
        let at = |share: f64| self.paper.map(|paper| self.neutral + share * (paper - self.neutral));
        json!({ "what": self.what, "needs": self.needs, "agrees": at(AGREES_SHARE), "half": at(HALF_SHARE),
                "direction": at(DIRECTION_SHARE) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"
        title = "T"
        about = "A"
        along = "mips"
        [setting]
        stock = { policy = "off" }
        hold = { policy = "hold" }
    "#;

    const PAPER: &str = r#"
        define = { gain = "hold / stock" }
        remark = [{ at = "one", claims = "1", found = "{greatest(gain)}" }]
        [[setting]]
        id = "one"
        name = "first"
        page = "t"
        differs = "-"
        chosen = "before"
        [[setting]]
        id = "two"
        name = "second"
        page = "t"
        differs = "the policy"
        chosen = "by search"
        names = { hold = { policy = "other" } }
        [[claim]]
        figure = "1"
        says = "gains up to twice"
        found = "{range(gain)}"
        judged = { one = "partly", two = "agrees" }
        cause = "guess: a guess"
        by = [
            { what = "greatest gain", figure = "greatest(gain)", paper = 2, neutral = 1, needs = "every run is faster", if = "lowest(gain) > 1" },
            { what = "speeds that are faster", cases = "share_below(stock, hold)" },
        ]
    "#;

    /// Returns the verdicts when the policies have these rates at two speeds.
    fn judged(hold: [f64; 2], other: [f64; 2]) -> Value {
        let point = |policy: &str, mips: &str, rate: f64| json!({ "point": [policy, mips], "rounds": [0], "figures": { "value": [rate] } });
        let data = json!({ "part": "t", "made_by": "a test", "machine": null, "kernel": [], "axes": ["policy", "mips"], "points": [
            point("off", "1000", 10.0), point("off", "2000", 10.0),
            point("hold", "1000", hold[0]), point("hold", "2000", hold[1]),
            point("other", "1000", other[0]), point("other", "2000", other[1]),
        ] });
        let claims = Claims::parse("t", PLAN).expect("claims");
        let data = serde_json::from_value(data).expect("data");
        let paper = Paper::parse("p", PAPER).expect("right");
        paper.judge(&[("t".to_owned(), (claims, data))].into()).expect("verdicts")
    }

    #[test]
    fn verdicts_follow_from_the_share_of_the_effect() {
        for (hold, verdict) in [
            ([19.5, 11.0], "agrees"),
            ([19.4, 11.0], "half"),
            ([15.0, 11.0], "half"),
            ([14.9, 11.0], "direction"),
            ([12.0, 11.0], "direction"),
            ([11.9, 11.0], "no"),
            ([30.0, 10.0], "no"),
        ] {
            let found = judged(hold, [10.0, 10.0]);
            assert_eq!(
                found["claims"][0]["first"]["score"]["verdict"], verdict,
                "{hold:?}: {found}"
            );
        }
    }

    #[test]
    fn the_best_setting_is_beside_the_first() {
        let found = judged([15.0, 9.0], [22.0, 11.0]);
        let claim = &found["claims"][0];
        assert_eq!(claim["first"]["score"], json!({ "verdict": "no", "share": null }));
        let (best, former) = (&claim["best"], &claim["best_former"]);
        assert_eq!(
            [&best["setting"], &best["found"], former],
            ["second", "1.10 to 2.20", "agrees"]
        );
        assert_eq!(claim["criteria"][0]["half"], 1.5);
        assert_eq!(
            found["remarks"][0],
            json!({ "setting": "first", "claims": "1", "found": "1.50" })
        );
    }

    #[test]
    fn causes_are_shown_or_guesses() {
        for (from, to) in [("guess: ", ""), ("two = \"agrees\"", "three = \"-\"")] {
            let error = Paper::parse("p", &PAPER.replacen(from, to, 1)).expect_err("wrong");
            assert!(error.to_string().contains("gains up to twice"), "{error}");
        }
    }
}
