"""Fast paths of Hoeffding trees and forests of them: flat arrays that follow the live trees.

May import what `fast_paths` may.
"""
